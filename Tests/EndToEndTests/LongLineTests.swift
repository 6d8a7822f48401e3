import Foundation
import Glibc
import PrismClient
import PrismTestSupport
import Testing

/// Delivery over a line with delay, loss and a rate: the window of packets (docs/delivery.md, "The window").
@Suite(.enabled(if: LongLine.isPermitted, LongLine.why))
struct LongLineTests {
  private static func shop(window: Int) -> String {
    "url: URL\nperiodicTimerSecond: 1\nmaxItem: 100\nwindow: \(window)\nmonitorList: [{type: sample}]\n"
  }

  private static let debug = "log: {level: debug}\n"

  /// - Parameter noiseBytes: of each report, which don't compress.
  private func send(_ numbers: Range<Int>, noiseBytes: Int = 0, _ harness: Harness) async throws {
    for start in stride(from: numbers.lowerBound, to: numbers.upperBound, by: 500) {
      let reports = (start..<min(start + 500, numbers.upperBound)).map {
        Sample.report($0, in: "shop", noiseBytes: noiseBytes)
      }
      for answer in try await harness.client().report(contentsOf: reports) {
        guard case .stored = answer else { throw Failed("\(answer)") }
      }
    }
  }

  /// The most packets that were on their way at a time, by the daemon's log.
  private func mostAtATime(_ harness: Harness) -> Int {
    var (now, most) = (0, 0)
    for line in harness.daemonLog.split(separator: "\n") where line.contains("namespace=shop") {
      if line.contains("packet sent") { now += 1 }
      if line.contains("packet answered") { now -= 1 }
      most = max(most, now)
    }
    return most
  }

  @Test(
    "packets leave before the receipts of those before them, and every report arrives once, in order",
    arguments: [
      LongLine(delayMilliseconds: 50), LongLine(delayMilliseconds: 150, lossPercent: 1),
      LongLine(delayMilliseconds: 50, megabitsPerSecond: 2),
    ])
  func window(line: LongLine) async throws {
    try await NetworkPair.with(over: line) { pair in
      try await withHarness(across: pair, namespaces: ["shop": Self.shop(window: 16)], extra: Self.debug) { harness in
        try await send(0..<10_000, harness)
        try await harness.waitUntilSent(["shop"])
        #expect(try await harness.arrived("shop", "meta").map(\.number) == Array(0..<10_000))
        let most = mostAtATime(harness)
        #expect(4...16 ~= most, "\(most) packets at a time")
        Harness.expectIdentity(try await harness.status())
      }
    }
  }

  @Test("the queue of a slow line is not filled: it drops nothing, and two packets at a time keep it busy")
  func slow() async throws {
    let shop = Self.shop(window: 64).replacing("maxItem: 100", with: "maxItem: 1000")
    try await NetworkPair.with(over: LongLine(delayMilliseconds: 50, megabitsPerSecond: 2)) { pair in
      try await withHarness(across: pair, namespaces: ["shop": shop], extra: Self.debug) { harness in
        try await send(0..<30_000, noiseBytes: 50, harness)
        try await harness.waitUntilSent(["shop"])
        #expect(try await harness.arrived("shop", "meta").map(\.number) == Array(0..<30_000))
        let most = mostAtATime(harness)
        #expect(2...8 ~= most, "\(most) packets at a time")
        let (came, dropped) = try await pair.endLine()
        #expect(came > 500 && dropped == 0, "the line dropped \(dropped) of \(came) packets")
      }
    }
  }

  @Test("with a window of 1 a packet leaves after the receipt of the one before it")
  func single() async throws {
    try await NetworkPair.with(over: LongLine(delayMilliseconds: 20)) { pair in
      try await withHarness(across: pair, namespaces: ["shop": Self.shop(window: 1)], extra: Self.debug) { harness in
        try await send(0..<2_000, harness)
        try await harness.waitUntilSent(["shop"])
        #expect(try await harness.arrived("shop", "meta").map(\.number) == Array(0..<2_000))
        #expect(mostAtATime(harness) == 1)
      }
    }
  }

  @Test("kills of either side and cuts of a lossy line, with packets on their way: each report arrives once, in order")
  func kills() async throws {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("long line"))
    try await NetworkPair.with(over: LongLine(delayMilliseconds: 100, lossPercent: 2)) { pair in
      try await withHarness(across: pair, namespaces: ["shop": Self.shop(window: 64)]) { harness in
        for round in 0..<6 {
          try await send(round * 1_000..<(round + 1) * 1_000, harness)
          try await waitUntil("some of them have left") {
            Harness.rows(try await harness.status(), "shop", "meta", "waiting") < 1_000
          }
          switch random.next() % 3 {
          case 0:
            try await harness.endDaemon(SIGKILL)
            try await harness.startDaemon()
          case 1:
            try await harness.endCollector(SIGKILL)
            try await harness.startCollector()
          default:
            try await pair.down("near")
            try await pair.up("near")
          }
        }
        try await harness.waitUntilSent(["shop"])
        #expect(try await harness.arrived("shop", "meta").map(\.number) == Array(0..<6_000))
        Harness.expectIdentity(try await harness.status())
      }
    }
  }
}
