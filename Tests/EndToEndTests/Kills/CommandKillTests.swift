import Foundation
import Glibc
import PrismBase
import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

/// Commands while the daemon and the collector are killed. `PRISM_E2E_KILLS=200` for the long form, `PRISM_SEED=…` for the same
/// kills again.
@Suite struct CommandKillTests {
  private static let shop = """
    url: URL
    periodicTimerSecond: 1
    monitorList: [{type: order}]
    recordIntervalSecond: 1
    """
  private static let kills = Seed.number("PRISM_E2E_KILLS") ?? 8
  private static let perKill = 5

  @Test("after kills of both at random points each command began at most once, and the collector knows its end")
  func ends() async throws {
    let seed = Seed.next("CommandKillTests, \(Self.kills) kills")
    var random = SeededRandom(seed: seed)
    let units = try Units(seed: seed &+ 1)
    let names = (0..<Self.kills * Self.perKill).map { "unit\($0)" }
    let allow = "commands: {allow: [run], units: [\(names.joined(separator: ", "))], runSocket: '\(units.path)'}\n"
    try await withHarness(namespaces: ["shop": Self.shop], extra: allow) { harness in
      try await harness.startCollector()
      try await harness.startDaemon()
      for round in 0..<Self.kills {
        let sent = names[round * Self.perKill..<(round + 1) * Self.perKill]
        for name in sent { try await Self.send(harness, name) }
        let goal = Int.random(in: 0...Self.perKill, using: &random)
        try await waitUntil("\(goal) commands begin") { units.begun(of: sent) >= goal }
        if random.oneIn(3) {
          try await harness.endCollector(SIGKILL)
          try await harness.startCollector()
        } else {
          try await harness.endDaemon(SIGKILL)
          try await harness.startDaemon()
        }
      }
      try await waitUntil("every command has ended", otherwise: harness.daemonLog.suffix(2000).description) {
        try await Self.answers(harness).count { $0.value.state.isFinal } == names.count
      }
      let answers = try await Self.answers(harness)
      for name in names {
        let (answer, begun) = (try #require(answers[name]), units.begun(of: [name]))
        if answer.state == .done {
          #expect(begun == 1 && answer.result?["output"] == .string(name), "\(name): \(begun), \(answer)")
        } else {
          #expect(begun <= 1 && answer.state == .failed && answer.result == "interrupted", "\(name): \(answer)")
        }
      }
      let interrupted = answers.values.count { $0.state == .failed }
      print("CommandKillTests: \(names.count) commands, \(interrupted) of them interrupted")
    }
  }

  /// The collector may be starting.
  private static func send(_ harness: Harness, _ name: String) async throws {
    let expires = Int(Date().timeIntervalSince1970) * 1000 + 3_600_000
    let fields = #"{"name":"run","args":{"name":"\#(name)"},"expires":\#(expires)}"#
    try await waitUntil("\(name) is sent") {
      let ran = try await Programs.run(
        "curl",
        [
          "-s", "-o", "/dev/null", "-w", "%{http_code}", "--unix-socket", harness.readerSocket, "-X", "PUT", "-H",
          "Content-Type: application/json", "-d", fields,
          "http://collector/api/v1/records/shop/prism.command/\(name)?device=e2e-device",
        ])
      return ["200", "201", "412"].contains(ran.output)
    }
  }

  /// At the collector, by the commands' names.
  private static func answers(_ harness: Harness) async throws -> [String: CommandAnswer] {
    var answers: [String: CommandAnswer] = [:]
    for row in try await harness.query("SELECT id, fields FROM records WHERE tab = 'prism.command'") {
      answers[row[0]] = CommandAnswer(fields: try JSONValue(parsing: row[1]))
    }
    return answers
  }
}

/// In the place of prism-run.socket: counts how often each unit is started, which takes up to 40 ms and prints its name.
private final class Units: Sendable {
  private let folder = TemporaryFolder()
  private let listener: Int32
  private let counts = Mutex<[String: Int]>([:])

  var path: String { folder("run.sock") }

  init(seed: UInt64) throws {
    let address = try #require(UnixAddress(path: folder("run.sock")))
    listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    try #require(address.withPointer { bind(listener, $0, $1) } == 0 && listen(listener, 64) == 0)
    Thread { [listener, weak self] in
      var random = SeededRandom(seed: seed)
      while case let connection = accept(listener, nil, nil), connection >= 0 {
        self?.serve(connection, milliseconds: .random(in: 0...40, using: &random))
      }
    }.start()
  }

  deinit {
    shutdown(listener, Int32(SHUT_RDWR))
    close(listener)
  }

  private func serve(_ connection: Int32, milliseconds: Int32) {
    defer { close(connection) }
    var bytes = [UInt8](repeating: 0, count: 100)
    let count = recv(connection, &bytes, bytes.count, 0)
    guard count > 1 else { return }
    let name = String(decoding: bytes[..<(count - 1)], as: UTF8.self)
    counts.withLock { $0[name, default: 0] += 1 }
    var end = pollfd(fd: connection, events: Int16(POLLIN), revents: 0)
    poll(&end, 1, milliseconds)
    let answer = Array("success 0\n\(name)".utf8)
    send(connection, answer, answer.count, Int32(MSG_NOSIGNAL))
  }

  func begun(of names: some Sequence<String>) -> Int {
    counts.withLock { counts in names.reduce(0) { $0 + (counts[$1] ?? 0) } }
  }
}
