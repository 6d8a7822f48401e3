import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismEngine

/// The window and the queue of the line (docs/delivery.md, "The window").
@Suite("The window notices a full line")
struct SendWindowTests {
  /// A line that carries a packet in `packetTime`, with as many packets on it as the window allows.
  private struct Line {
    var packetTime: Duration, roundTrip: Duration = .milliseconds(100)
    var window = SendWindow()
    var most = 16
    var now: Duration = .seconds(1000)
    /// The round trips that the packets on their way will have.
    private var onTheWay: [Duration] = []

    init(packetTime: Duration, roundTrip: Duration = .milliseconds(100), most: Int = 16) {
      (self.packetTime, self.roundTrip, self.most) = (packetTime, roundTrip, most)
    }

    /// - Parameter delayed: by a lost segment, for example.
    mutating func receipt(delayed: Duration = .zero) {
      while onTheWay.count < window.packets {
        onTheWay.append(max(roundTrip, packetTime * (onTheWay.count + 1)))
      }
      let measured = onTheWay.removeFirst() + delayed
      now += max(packetTime, roundTrip / window.packets)
      window.open(
        most: most, LineReading(roundTrip: measured, least: min(measured, roundTrip)), bodyBytes: 43_000, now: now)
    }

    mutating func receipts(_ count: Int) { for _ in 0..<count { receipt() } }
  }

  @Test(
    "the window stays at what the line carries and a short queue",
    arguments: [
      // 43 KB at 2, 4, 10 and 100 Mbit/s; a slow receiver or a short line without a queue.
      (Duration.milliseconds(172), 2...3), (.milliseconds(86), 2...4), (.milliseconds(34), 4...6),
      (.microseconds(3_400), 16...16), (.zero, 16...16),
    ])
  func steady(packetTime: Duration, expected: ClosedRange<Int>) {
    var line = Line(packetTime: packetTime)
    line.receipts(200)
    for number in 0..<200 {
      line.receipt()
      #expect(expected.contains(line.window.packets), "\(line.window.packets) after \(number)")
    }
  }

  @Test("a line that becomes slow closes the window, never below 2; one that becomes fast opens it")
  func changes() {
    var line = Line(packetTime: .zero)
    line.receipts(50)
    #expect(line.window.packets == 16)
    line.packetTime = .seconds(1)
    var least = 16
    for _ in 0..<100 {
      line.receipt()
      least = min(least, line.window.packets)
    }
    #expect(least == 2 && line.window.packets == 2)
    line.packetTime = .zero
    line.receipts(200)
    #expect(line.window.packets == 16)
  }

  @Test("packets that lost a segment take longer, and close no window")
  func loss() {
    var line = Line(packetTime: .microseconds(100))
    for number in 0..<500 { line.receipt(delayed: number % 3 == 0 ? .milliseconds(250) : .zero) }
    #expect(line.window.packets == 16)
  }

  @Test("the receiver's window holds, on a full line too")
  func most() {
    var line = Line(packetTime: .seconds(1), most: 1)
    line.receipts(20)
    #expect(line.window.packets == 1)
    line.most = 64
    line.receipts(20)
    #expect(line.window.packets == 2)
  }

  @Test(
    "the first receipt opens the window to what the first packet showed of the line",
    arguments: [
      (Duration.microseconds(100), 43_000, 16), (.milliseconds(5), 43_000, 7), (.milliseconds(20), 43_000, 2),
      (.milliseconds(99), 43_000, 2), (.milliseconds(150), 43_000, 2),
      // Of one flight: it showed nothing.
      (.microseconds(100), 9_000, 2),
    ])
  func first(queued: Duration, bodyBytes: Int, packets: Int) {
    let reading = LineReading(roundTrip: .milliseconds(100) + queued, least: .milliseconds(100))
    var window = SendWindow()
    window.open(most: 16, reading, bodyBytes: bodyBytes, now: .seconds(1))
    #expect(window.packets == packets)
    window.open(most: 16, reading, bodyBytes: bodyBytes, now: .seconds(1))
    #expect(window.packets == min(packets + (queued > .milliseconds(100) ? 0 : 1), 16), "by one from then on")
  }

  @Test("the first receipt after a failure opens the window by one, as all others do")
  func firstAfterFailure() {
    var window = SendWindow()
    window.shrink()
    window.open(
      most: 16, LineReading(roundTrip: .milliseconds(100), least: .milliseconds(100)), bodyBytes: 43_000,
      now: .seconds(1))
    #expect(window.packets == 2)
  }

  @Test("a longer route looks like a queue for 6 minutes; then a packet goes alone, and the window opens again")
  func route() {
    var line = Line(packetTime: .microseconds(100))
    line.receipts(50)
    line.roundTrip = .milliseconds(400)
    line.receipts(200)
    #expect(line.window.packets < 16 && line.window.line.least == .milliseconds(100))
    line.now += LineGauge.leastAgeMax
    line.receipts(1)
    #expect(line.window.packets == 1)
    line.receipts(100)
    #expect(line.window.packets == 16 && line.window.line.least == .milliseconds(400))
  }

  @Test("another network has another least round trip")
  func network() {
    var line = Line(packetTime: .microseconds(100))
    line.receipts(50)
    line.roundTrip = .milliseconds(400)
    line.window.networkChanged(sending: 15)
    line.receipts(50)
    #expect(line.window.packets == 16 && line.window.line.least == .milliseconds(400))
  }

  @Test("readings of any kind keep the window between 1 and the most")
  func anything() {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("window"))
    var window = SendWindow()
    for number in 0..<20_000 {
      let times = [0, 1, 50, 99_000, 201_000, 3_000_000, Int64(UInt32.max)]
      let reading = LineReading(
        roundTrip: .microseconds(random.pick(times)), least: .microseconds(random.pick(times)))
      let most = Int.random(in: 1...64, using: &random)
      if random.oneIn(50) { window.shrink() }
      if random.oneIn(333) { window.networkChanged(sending: 3) }
      window.open(
        most: most, random.oneIn(7) ? nil : reading, bodyBytes: Int.random(in: 0...100_000, using: &random),
        now: .seconds(number))
      #expect((1...most).contains(window.packets))
    }
  }
}
