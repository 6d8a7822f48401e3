import PrismProtocol
import Synchronization
import Testing

@testable import PrismClient

@Suite("A client with a spool")
struct SpooledClientTests {
  private static let net = ReportType("net")!

  private static func daemon(_ answers: [String]) -> ScriptedDaemon {
    ScriptedDaemon([
      [.read(lines: 1), .write(PrismClientTests.greeting)]
        + answers.flatMap { [ScriptedDaemon.Step.read(lines: 1), .write($0 + "\n")] }
    ])
  }

  @Test("a report with a deadline is answered; the handle names the namespace")
  func reports() async throws {
    let daemon = Self.daemon([#"{"acked":1}"#])
    let client = try SpooledClient(socket: daemon.path, appName: "pos", appVersion: "4.2.0", spool: .none)
    let shop = client.namespace(NamespaceName("shop")!)
    guard case .stored(let id) = await shop.report(Self.net, meta: ["ms": 12], within: .seconds(60)) else {
      Issue.record("not stored")
      return
    }
    #expect(daemon.lines[0] == #"{"hello":{"app":{"APP_NAME":"pos","APP_VERSION":"4.2.0"},"answer":"cumulative"}}"#)
    #expect(daemon.lines[1].hasPrefix(#"{"reportId":"\#(id)","namespace":"shop","type":"net","createdTime":"#))
    #expect(daemon.lines[1].hasSuffix(#","meta":{"ms":12}}"#))
    #expect(client.counts.stored == 1)
  }

  @Test("a refusal has its code and message")
  func refused() async throws {
    let daemon = Self.daemon([
      #"{"acked":1,"refused":[{"seq":1,"code":"unknown_type","message":"no such type"}]}"#,
      #"{"acked":2,"refused":[{"seq":2,"code":"too_new","message":"m"}]}"#,
    ])
    let client = try SpooledClient(socket: daemon.path, spool: .none)
    let report = Report(Self.net, meta: ["ms": 1], id: ReportID("r1"))
    let answer = await client.report(report, within: .seconds(60))
    #expect(answer == .refused(reportID: "r1", Refusal(.unknownType, "no such type", retryMilliseconds: nil)))
    let second = await client.report(report, within: .seconds(60))
    #expect(second == .refused(reportID: "r1", Refusal(.internal, "too_new: m", retryMilliseconds: nil)))
  }

  @Test("without a daemon a report is in the spool, and the next client sends it")
  func spools() async throws {
    let daemon = ScriptedDaemon([
      [.read(lines: 1), .write(PrismClientTests.greeting), .read(lines: 2), .write(#"{"acked":2}"# + "\n")]
    ])
    let folder = daemon.path + ".spool"
    do {
      let client = try SpooledClient(socket: daemon.path + ".nobody", spool: .folder(folder))
      let answer = await client.report(Report(Self.net, meta: ["n": 1], id: ReportID("r1")), within: .milliseconds(200))
      #expect(answer == .spooled(reportID: "r1"))
      #expect(await client.flush(within: .seconds(60)))
      #expect(client.counts.spoolWaiting == 1)
    }
    let next = try SpooledClient(socket: daemon.path, spool: .folder(folder))
    #expect(next.send(Report(Self.net, meta: ["n": 2], id: ReportID("r2"))) == .queued(reportID: "r2"))
    daemon.waitForEnd(of: 0)
    #expect(daemon.lines.contains { $0.hasPrefix(#"{"reportId":"r1","#) })
  }

  private static func switches(_ kind: String, _ generation: Int, isGather: Bool) -> ScriptedDaemon.Step {
    let switches = NamespaceSwitches(namespace: "shop", generation: generation, isGather: isGather, types: ["order.*"])
    return .write(JSONValue.object([.init(kind, switches.json)]).text + "\n")
  }

  @Test("settings are a sequence that goes on over a restart of the daemon and ends with the client")
  func settings() async throws {
    let daemon = ScriptedDaemon([
      [.read(lines: 1), Self.switches("watch", 7, isGather: true), Self.switches("changed", 8, isGather: false)],
      // The daemon was restarted: it says what is known, then something new.
      [
        .read(lines: 1), Self.switches("watch", 1, isGather: false), Self.switches("changed", 2, isGather: true),
        .read(lines: 1),
      ],
    ])
    var client: SpooledClient? = try SpooledClient(socket: daemon.path, spool: .none)
    let shop = try #require(client).namespace(NamespaceName("shop")!)
    let order = try #require(ReportType("order.new"))
    let alone = try SpooledClient(socket: daemon.path + ".absent", spool: .none)
    #expect(alone.namespace(NamespaceName("shop")!).isGather(order), "true until the daemon has answered")
    var last: NamespaceSwitches?
    for await settings in shop.settings {
      last = settings  // a reader that is late sees the newest state only
      if settings.generation == 2 { break }
    }
    #expect(last?.isGather == true)
    #expect(shop.isGather(order) && !shop.isGather(Self.net))
    #expect(Set(daemon.lines) == [#"{"watch":{"namespace":"shop","configuration":true}}"#])
    let rest = shop.settings
    client = nil
    withExtendedLifetime(shop) {}
    _ = rest
  }

  @Test("a loss is reported with its cause, also while the client ends")
  func losses() throws {
    let losses = Mutex<[SpooledLoss]>([])
    do {
      let client = try SpooledClient(socket: "/nowhere/ingest.sock", spool: .none) { loss in
        losses.withLock { $0.append(loss) }
      }
      for number in 1...3 { client.send(Report(Self.net, meta: ["n": .int(number)])) }
    }
    let found = losses.withLock { $0 }
    #expect(found.map(\.cause) == [.spoolFull] && found.map(\.count) == [3])
    #expect(found.allSatisfy { !$0.message.isEmpty })
  }

  @Test("after a flush the client ends when its owner lets go of it")
  func ends() async throws {
    for _ in 0..<20_000 {
      var client: SpooledClient? = try SpooledClient(spool: .none)
      weak let observed = client
      _ = await client?.flush(within: .zero)
      client = nil
      #expect(observed == nil)
    }
  }

  @Test("what is no report is rejected with a text")
  func rejects() throws {
    let client = try SpooledClient(spool: .none)
    #expect(
      client.send(Report(Self.net, meta: [:]))
        == .rejected("invalid argument: check the names, the report id, and that the meta is a JSON object"))
    #expect(throws: SpooledClient.OpenError.self) {
      try SpooledClient(socket: String(repeating: "x", count: 200), spool: .none)
    }
  }
}
