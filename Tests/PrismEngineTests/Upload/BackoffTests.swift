import PrismBase
import PrismProtocol
import Testing

@testable import PrismEngine

@Suite("Backoff")
struct BackoffTests {
  static let ceilings: [(failures: Int, seconds: Int, configurationSeconds: Int)] = [
    (-1, 1, 1), (0, 1, 1), (1, 1, 1), (2, 2, 2), (3, 4, 4), (8, 128, 128), (9, 256, 256), (10, 300, 512),
    (11, 300, 600), (17, 300, 600), (18, 300, 600), (64, 300, 600), (.max, 300, 600),
  ]

  @Test(
    "the pause is anything from nothing to a ceiling that doubles from 1 s to 300 s, 600 s for configuration",
    arguments: ceilings)
  func bounds(failures: Int, seconds: Int, configurationSeconds: Int) {
    for (isConfiguration, ceiling) in [(false, seconds), (true, configurationSeconds)] {
      let microseconds = UInt64(ceiling) * 1_000_000
      let draw = { Backoff.pause(afterFailures: failures, isConfiguration: isConfiguration, random: $0) }
      #expect(draw(0) == .zero)
      #expect(draw(microseconds / 2) == .seconds(ceiling) / 2)
      #expect(draw(microseconds) == .seconds(ceiling))
      #expect(draw(microseconds + 1) == .zero, "every value is as likely as any other")
      #expect((Duration.zero ... .seconds(ceiling)).contains(draw(.max)))
    }
  }

  @Test(
    "a share is of the whole duration, in steps of a microsecond, and never negative",
    arguments: [
      (Duration.zero, .zero ... .zero), (.seconds(-5), .zero ... .zero), (.nanoseconds(999), .zero ... .zero),
      (.microseconds(3), .zero ... .microseconds(3)), (.seconds(3600), .zero ... .seconds(3600)),
    ] as [(Duration, ClosedRange<Duration>)])
  func shares(whole: Duration, range: ClosedRange<Duration>) {
    for random in [0, 1, 2, 3, 4, 1 << 32, UInt64.max] as [UInt64] { #expect(range.contains(whole.share(random))) }
  }

  @Test(
    "a wait is given in whole seconds, rounded up",
    arguments: [
      (Duration.zero, 0), (.milliseconds(200), 1), (.seconds(1), 1), (.milliseconds(1001), 2),
    ] as [(Duration, Int64)])
  func rounding(wait: Duration, seconds: Int64) { #expect(wait.secondsRoundedUp == seconds) }
}

@Suite("The circuit")
struct CircuitTests {
  @Test("opens with the fifth failure in a row, of either kind, and closes with a success") func opens() {
    var circuit = Circuit()
    for (count, kind) in [RowKind.meta, .payload, .meta, .payload].enumerated() {
      circuit.failed(kind)
      #expect(!circuit.isOpen && circuit.failuresInRow == count + 1)
    }
    circuit.failed(.meta)
    #expect(circuit.isOpen)
    circuit.succeeded()
    #expect(circuit == Circuit())
  }

  @Test("a success in between begins the count again") func interrupted() {
    var circuit = Circuit(failuresInRow: 4)
    circuit.succeeded()
    circuit.failed(.meta)
    #expect(circuit.failuresInRow == 1 && !circuit.isOpen)
  }

  @Test("open, it lets one probe through at a time; closed, both kinds go side by side") func probes() {
    var circuit = Circuit(failuresInRow: 4)
    circuit.started(.meta)
    #expect(circuit.allows(.payload) && circuit.probing == nil)
    circuit.failed(.meta)
    #expect(circuit.allows(.meta) && circuit.allows(.payload))
    circuit.started(.meta)
    #expect(circuit.allows(.meta) && !circuit.allows(.payload))
    circuit.ended(.payload)
    #expect(!circuit.allows(.payload), "only the probe itself ends the probing")
    circuit.failed(.meta)
    #expect(circuit.allows(.payload) && circuit.failuresInRow == 6)
  }

  @Test("what was kept over a restart is never less than nothing") func restored() {
    #expect(Circuit(failuresInRow: -3) == Circuit())
    #expect(Circuit(failuresInRow: 5).isOpen)
  }

  @Test(
    "what is left of a time is said in one unit, rounded up",
    arguments: [
      (0, "0 s"), (1, "1 s"), (119, "119 s"), (120, "2 min"), (121, "3 min"), (3601, "61 min"), (7200, "2 h"),
      (7201, "3 h"), (172_799, "48 h"), (172_800, "2 days"), (172_801, "3 days"),
    ]) func words(seconds: Int, text: String)
  { #expect(Duration.seconds(seconds).words == text) }
}
