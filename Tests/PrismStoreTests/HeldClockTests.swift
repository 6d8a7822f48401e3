import PrismTestSupport
import Testing

@testable import PrismStore

@Suite("The clock by which rows grow old")
struct HeldClockTests {
  private static let hour = Duration.seconds(3600)
  private static let begin: Int64 = 1_700_000_000_000

  private func clock(_ text: String? = nil, boot: String = "b1", uptime: Duration = .zero) -> HeldClock {
    HeldClock(text, bootID: boot, uptime: uptime, begin: Self.begin)
  }

  @Test("it begins with the wall clock, and goes on by the uptime of each boot")
  func boots() {
    var held = clock(uptime: .seconds(100))
    #expect(held.time(.seconds(100)) == Self.begin && held.time(.seconds(101)) == Self.begin + 1000)
    let text = held.written(.seconds(110))
    #expect(clock(text, uptime: .seconds(500)).time(.seconds(500)) == Self.begin + 400_000, "the same boot")
    #expect(clock(text, boot: "b2", uptime: .seconds(5)).time(.seconds(5)) == Self.begin + 15_000)
    #expect(clock(text, boot: "", uptime: .seconds(5)).time(.seconds(5)) == Self.begin + 10_000, "an unknown boot")
  }

  @Test("a row is never held for longer than it is, and seldom for an hour less")
  func neverEarly() {
    let seed = SeededRandom.announcedSeed("held clock")
    var random = SeededRandom(seed: seed)
    var (held, uptime, sequence) = (clock(), Duration.zero, Int64(1))
    var arrivals: [Int64] = [0]
    for _ in 0..<2000 {
      uptime += .seconds(Int64.random(in: 0...4000, using: &random))
      for _ in 0..<Int.random(in: 0...3, using: &random) {
        arrivals.append(held.time(uptime))
        sequence += 1
      }
      held.note(sequence, uptime)
      if Int.random(in: 0..<50, using: &random) == 0 { held = clock(held.written(uptime), uptime: uptime) }
    }
    for (sequence, arrival) in arrivals.enumerated().dropFirst() {
      guard let since = held.heldSince(Int64(sequence)) else { continue }
      #expect(since >= arrival, "row \(sequence), seed \(seed)")
      if sequence > arrivals.count * 7 / 8 { #expect(since - arrival <= 3_600_000, "seed \(seed)") }
    }
    #expect(held.marks.count <= 400)
    for days in 0...60 {
      let (end, cutoff) = (Int(held.end(heldFor: days, uptime)), held.time(uptime) - Int64(days) * 86_400_000)
      #expect(arrivals.prefix(end).allSatisfy { $0 < cutoff })
    }
  }

  @Test("damaged text is as good as no text: no row is old", arguments: [0, 12, 30, 60])
  func damaged(place: Int) {
    var held = clock()
    held.note(5, .zero)
    var text = Array(held.written(Self.hour).utf8)
    #expect(clock(String(decoding: text, as: UTF8.self), uptime: Self.hour).heldSince(4) == Self.begin)
    text[min(place, text.count - 1)] ^= 1
    #expect(clock(String(decoding: text, as: UTF8.self), uptime: Self.hour).marks.isEmpty)
  }
}
