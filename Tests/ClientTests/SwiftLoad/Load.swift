import Foundation
import PrismClient
import PrismProtocol
import Synchronization

/// Reports numbers from several tasks, and logs `NUMBER RESULT` for each when its call returns.
final class Load: Sendable {
  private static let sample = ReportType("sample")!

  private let flags: LoadFlags
  private let client: SpooledClient
  private let shop: NamespaceReporter
  private let log: Int32
  private let next: Mutex<Int>
  private let last: Int

  init(_ flags: LoadFlags, _ losses: Losses) throws {
    self.flags = flags
    client = try SpooledClient(
      socket: try flags.text("socket"), appName: "client-load-swift", spool: .folder(try flags.text("spool")),
      spoolBytes: UInt64(try flags.number("spool-bytes"))
    ) { losses.note($0) }
    shop = client.namespace(NamespaceName("shop")!)
    log = open(try flags.text("log"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
    guard log >= 0 else { throw LoadFailure("no log") }
    let first = try flags.number("first")
    next = Mutex(first)
    last = first + (try flags.number("reports", default: 1000))
  }

  /// - Returns: whether all of its children ended well, and what the client counted.
  func run() async throws -> (isGood: Bool, counts: SpooledCounts?) {
    if flags.hasSignals { Self.interruptOneself() }
    let children = try (0..<(try flags.number("children"))).map { try child($0) }
    try await withThrowingTaskGroup(of: Void.self) { group in
      for index in 0..<(try flags.number("threads", default: 8)) { group.addTask { try await self.reportMany(index) } }
      try await group.waitForAll()
    }
    for child in children { child.waitUntilExit() }
    await client.flush(within: .milliseconds(try flags.number("close", default: 10_000)))
    return (children.allSatisfy { $0.terminationStatus == 0 }, client.counts)
  }

  private func child(_ index: Int) throws -> Process {
    let child = Process()
    child.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
    child.arguments = try flags.words(ofChild: index)
    try child.run()
    return child
  }

  private func reportMany(_ index: Int) async throws {
    var random = UInt64(try flags.number("seed")) &* 31 &+ UInt64(index)
    let pace = try flags.number("pace")
    while let number = takeNumber() {
      try await report(number, &random)
      if pace > 0 { try await Task.sleep(for: .microseconds(pace)) }
    }
  }

  private func takeNumber() -> Int? {
    next.withLock { next in
      guard next < last else { return nil }
      next += 1
      return next - 1
    }
  }

  private func report(_ number: Int, _ random: inout UInt64) async throws {
    random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    let waits = random >> 33 % 100 < UInt64(try flags.number("share", default: 30))
    let meta: JSONValue = ["n": .int(number), "text": .string("an order of \(number % 97) items")]
    let payload = number % 10 == 0 ? [UInt8](repeating: UInt8(97 + number % 26), count: 200) : nil
    let answer =
      waits
      ? await shop.report(
        Self.sample, meta: meta, payload: payload,
        within: .milliseconds(try flags.number("deadline", default: 2000)))
      : shop.send(Self.sample, meta: meta, payload: payload)
    let line = Array("\(number) \(Self.word(answer))\n".utf8)
    guard write(log, line, line.count) == line.count else { throw LoadFailure("the log can't be written") }
  }

  private static func word(_ answer: SpooledAnswer) -> String {
    switch answer {
    case .stored: "stored"
    case .queued: "queued"
    case .spooled: "spooled"
    case .refused: "refused"
    case .dropped: "dropped"
    case .rejected: "error"
    }
  }

  /// A signal every three milliseconds.
  private static func interruptOneself() {
    signal(SIGALRM) { _ in }
    var timer = itimerval(
      it_interval: timeval(tv_sec: 0, tv_usec: 3000), it_value: timeval(tv_sec: 0, tv_usec: 3000))
    setitimer(__itimer_which_t(ITIMER_REAL.rawValue), &timer, nil)
  }
}
