import PrismProtocol
import Synchronization
import Testing

@testable import PrismClient

@Suite("A client")
struct PrismClientTests {
  static let greeting = #"{"hello":{"server":"prismd","version":"1","limits":{}}}"# + "\n"
  static let net = ReportType("net")!

  static func stored(_ id: String) -> String { #"{"status":"stored","reportId":"\#(id)"}"# + "\n" }

  @Test("greets with the app's facts, then reports; the answer is a value")
  func reports() async throws {
    let daemon = ScriptedDaemon([
      [.read(lines: 1), .write(Self.greeting), .read(lines: 1), .write(Self.stored("r1"))]
    ])
    let client = PrismClient(socket: daemon.path, app: ["APP_NAME": "pos"])
    #expect(try await client.report(Report(Self.net, meta: ["ms": 12])) == .stored(reportID: "r1", isDuplicate: false))
    #expect(
      daemon.lines == [
        #"{"hello":{"app":{"APP_NAME":"pos"},"answer":"each"}}"#,
        #"{"namespace":"prism","type":"net","meta":{"ms":12}}"#,
      ])
  }

  @Test("a payload follows its line as raw bytes, announced by their number")
  func payload() {
    let report = Report(.appCrash, meta: ["a": 1], payload: [0, 0x0A, 0xFF], id: ReportID("x"), createdTime: 5)
    let line =
      #"{"namespace":"prism","type":"appCrash","meta":{"a":1},"reportId":"x","createdTime":5,"payloadBytes":3}"#
    #expect(report.requestBytes == Array(line.utf8) + [0x0A, 0, 0x0A, 0xFF])
  }

  @Test("a refusal comes with its code, its message and when to try again")
  func refused() async throws {
    let answer = #"{"status":"refused","code":"busy","message":"stopping","retryMs":1000}"# + "\n"
    let daemon = ScriptedDaemon([[.read(lines: 1), .write(Self.greeting), .read(lines: 1), .write(answer)]])
    let client = PrismClient(socket: daemon.path)
    #expect(
      try await client.report(Report(Self.net, meta: ["ms": 1]))
        == .refused(Refusal(.busy, "stopping", retryMilliseconds: 1000)))
  }

  @Test("a connection that is refused says why, and when to try again", arguments: [0, 1])
  func refusedConnection(linesRead: Int) async {
    let answer = #"{"status":"refused","code":"busy","message":"too many connections","retryMs":1000}"# + "\n"
    let daemon = ScriptedDaemon([[.read(lines: linesRead), .write(answer)]])
    let refusal = Refusal(.busy, "too many connections", retryMilliseconds: 1000)
    let error = ClientError.refused(socket: daemon.path, refusal)
    await #expect(throws: error) { try await PrismClient(socket: daemon.path).report(Report(Self.net, meta: [:])) }
    #expect(error.description == "\(daemon.path): the connection is refused: busy: too many connections")
  }

  @Test("a connection that ends before its greeting is tried again, for no report was sent on it")
  func greetsAgain() async throws {
    let daemon = ScriptedDaemon([
      [.read(lines: 1)], [.read(lines: 1), .write(Self.greeting), .read(lines: 1), .write(Self.stored("r1"))],
    ])
    let client = PrismClient(socket: daemon.path)
    #expect(try await client.report(Report(Self.net, meta: ["ms": 1])) == .stored(reportID: "r1", isDuplicate: false))
  }

  @Test("reports with ids whose answers were lost are sent again over a new connection, the answered ones are not")
  func reconnects() async throws {
    let daemon = ScriptedDaemon([
      [.read(lines: 1), .write(Self.greeting), .read(lines: 2), .write(Self.stored("a"))],
      [.read(lines: 1), .write(Self.greeting), .read(lines: 1), .write(Self.stored("b"))],
    ])
    let client = PrismClient(socket: daemon.path)
    let reports = ["a", "b"].map { Report(Self.net, meta: ["ms": 1], id: ReportID($0)) }
    let answers = try await client.report(contentsOf: reports)
    #expect(answers == [.stored(reportID: "a", isDuplicate: false), .stored(reportID: "b", isDuplicate: false)])
    #expect(daemon.lines.filter { $0.contains(#""reportId":"a""#) }.count == 1)
    #expect(daemon.lines.filter { $0.contains(#""reportId":"b""#) }.count == 2)
  }

  @Test("without ids a lost answer is an error that leaves open whether the report was stored")
  func lostAnswer() async {
    let daemon = ScriptedDaemon([[.read(lines: 1), .write(Self.greeting), .read(lines: 1)]])
    let client = PrismClient(socket: daemon.path)
    await #expect(throws: ClientError.connectionLost(socket: daemon.path, mayBeStored: true)) {
      try await client.report(Report(Self.net, meta: ["ms": 1]))
    }
  }

  @Test("a connection that the daemon closed meanwhile is noticed before a report goes over it, with an id or without")
  func staleConnection() async throws {
    let daemon = ScriptedDaemon([
      [.read(lines: 1), .write(Self.greeting), .read(lines: 1), .write(Self.stored("a"))],
      [.read(lines: 1), .write(Self.greeting), .read(lines: 1), .write(Self.stored("b"))],
    ])
    let client = PrismClient(socket: daemon.path)
    _ = try await client.report(Report(Self.net, meta: ["ms": 1]))
    daemon.waitForEnd(of: 0)
    #expect(try await client.report(Report(Self.net, meta: ["ms": 2])) == .stored(reportID: "b", isDuplicate: false))
  }

  @Test("where no connection is greeted nothing was sent, and the error says so")
  func neverGreeted() async {
    let daemon = ScriptedDaemon(Array(repeating: [.read(lines: 1)], count: 16))
    let lost = ClientError.connectionLost(socket: daemon.path, mayBeStored: false)
    await #expect(throws: lost) { try await PrismClient(socket: daemon.path).report(Report(Self.net, meta: ["ms": 1])) }
  }

  @Test("a socket without a listener is unreachable, and named")
  func unreachable() async {
    let client = PrismClient(socket: "/nowhere/ingest.sock")
    await #expect(throws: ClientError.unreachable(socket: "/nowhere/ingest.sock", errno: 2)) {
      try await client.report(Report(Self.net, meta: ["ms": 1]))
    }
  }

  @Test("many lines at once are answered cumulatively, refusals counted by code")
  func bulk() async throws {
    let daemon = ScriptedDaemon([
      [
        .read(lines: 1), .write(Self.greeting), .read(lines: 4), .write(#"{"acked":3}"# + "\n"),
        .write(#"{"acked":4,"refused":[{"seq":4,"code":"unknown_type","message":"no"}]}"# + "\n"),
      ]
    ])
    let client = PrismClient(socket: daemon.path)
    let chunks = Mutex([3, 1])
    let outcome = try await client.send {
      chunks.withLock { chunks in
        guard !chunks.isEmpty else { return nil }
        let count = chunks.removeFirst()
        let line = Report(Self.net, meta: ["ms": 1]).requestBytes
        return (Array(repeatElement(line, count: count).joined()), count)
      }
    }
    #expect(outcome.answered == 4 && outcome.stored == 3)
    #expect(outcome.refused == [.unknownType: 1])
    #expect(outcome.examples[.unknownType]?.sequence == 4)
  }

  @Test(
    "an answer that the protocol does not have is an error", arguments: ["{}", "nonsense", #"{"status":"perhaps"}"#])
  func violation(answer: String) async {
    let daemon = ScriptedDaemon([[.read(lines: 1), .write(Self.greeting), .read(lines: 1), .write(answer + "\n")]])
    let client = PrismClient(socket: daemon.path)
    await #expect { try await client.report(Report(Self.net, meta: ["ms": 1])) } throws: {
      if case .protocolViolation = $0 as? ClientError { true } else { false }
    }
  }

  @Test("the common information is asked for over the same connection, again after a restart")
  func common() async throws {
    let daemon = ScriptedDaemon([
      [.read(lines: 1), .write(Self.greeting), .read(lines: 1)],
      [.read(lines: 1), .write(Self.greeting), .read(lines: 1), .write(#"{"common":{"APP_NAME":"pos"}}"# + "\n")],
    ])
    #expect(try await PrismClient(socket: daemon.path).common() == ["APP_NAME": "pos"])
  }

  @Test("the gather switch is answered from memory; the daemon tells each change", .timeLimit(.minutes(10)))
  func gathers() async throws {
    func switches(_ kind: String, _ generation: Int, _ isGather: Bool) -> ScriptedDaemon.Step {
      let told = NamespaceSwitches(namespace: "shop", generation: generation, isGather: isGather, types: [])
      return .write((JSONValue.object([.init(kind, told.json)])).text + "\n")
    }
    let daemon = ScriptedDaemon([
      [.read(lines: 1), switches("watch", 1, true), switches("changed", 2, false), .read(lines: 1)]
    ])
    let (client, shop) = (PrismClient(socket: daemon.path), NamespaceName("shop")!)
    #expect(PrismClient(socket: daemon.path + ".absent").isGather(shop), "true until the daemon has answered")
    while client.isGather(shop) { await Task.yield() }  // until the change came
    for _ in 0..<100 { #expect(!client.isGather(shop)) }
    #expect(daemon.lines == [#"{"watch":{"namespace":"shop","configuration":true}}"#])
  }
}
