import Foundation
import PrismBase
import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismCollector
@testable import PrismOutputs

@Suite(
  "The output clickhouse, on a real server", .timeLimit(.minutes(3)),
  .enabled(if: ClickHouseServer.isInstalled, "apt-get install clickhouse-server"))
struct ClickHouseOutputTests {
  private static func reports(_ numbers: [Int], namespace: String = "shop", payload: [UInt8]? = nil) async throws
    -> [StoredReport]
  {
    let store = MemoryPacketStore()
    _ = try await store.take(StoreRig.packet(numbers, namespace: namespace, payload: payload))
    return try await store.outputSource("x").next(after: 0, limit: 10_000)
  }

  @Test("each report is a row of its namespace's table, whole, and a page that comes again is there once")
  func rows() async throws {
    let server = try await ClickHouseServer()
    let output = ClickHouseOutput(server.options(), name: "house")
    var reports = try await Self.reports([1, 2]) + Self.reports([3], namespace: "a-b_1", payload: [0, 0xFF, 10])
    for index in reports.indices { reports[index].id = Int64(index) + 1 }
    reports[1].createdTime = nil
    reports[1].meta = Array(#"{"t":"`'\\\u0000ü\n"}"#.utf8)
    for _ in 0..<2 { #expect(try await output.deliver(reports).isEmpty) }
    let columns = "id, device, kind, type, reportId, createdTime, chainBroken, hex(ifNull(payload, '')), meta"
    let shop = try server.query("SELECT \(columns) FROM prism.shop FINAL ORDER BY id FORMAT JSONCompact")
    let data = try JSONValue(parsing: Array((shop ?? "").utf8))["data"]?.array ?? []
    #expect(data.count == 2)
    for (row, report) in zip(data, reports) {
      let row = row.array ?? []
      #expect(row[0].string == "\(report.id)" && row[1].string == report.device && row[3].string == report.type)
      #expect(row[5].string == report.createdTime.map { "\($0)" })
      #expect(Array((row[8].string ?? "").utf8) == report.meta)
    }
    #expect(try server.query("SELECT \(columns) FROM prism.`a-b_1` FINAL")?.contains("\t00FF0A\t") == true)
    #expect(
      try server.query("SELECT count() FROM prism.shop") == "4\n", "this server knows no tokens, so both are there")
    #expect(try server.query("SELECT toYYYYMM(created) FROM prism.shop FINAL WHERE id = 1") == "197001\n")
  }

  enum Fault: CaseIterable, Sendable {
    case noPassword, noPasswordFile, noServer

    func change(_ options: inout ClickHouseOutput.Options) {
      switch self {
      case .noPassword: options.passwordFile = nil
      case .noPasswordFile: options.passwordFile = "/nowhere"
      case .noServer: options.url = "http://127.0.0.1:1"
      }
    }

    var words: String {
      switch self {
      case .noPassword: "password"
      case .noPasswordFile: "passwordFile: /nowhere"
      case .noServer: "http://127.0.0.1:1"
      }
    }
  }

  @Test("a fault of the server or its operator holds the output, and says what it is", arguments: Fault.allCases)
  func holds(fault: Fault) async throws {
    let server = try await ClickHouseServer()
    let output = ClickHouseOutput(server.options(fault.change), name: "house")
    let reports = try await Self.reports([1])
    let failure = await #expect(throws: OutputFailure.self) { try await output.deliver(reports) }
    #expect(failure?.description.contains(fault.words) == true, "\(failure?.description ?? "")")
    #expect(failure?.taken == 0)
  }

  @Test("a table of another form holds the output until it is right, and nothing is lost") func otherTable()
    async throws
  {
    let server = try await ClickHouseServer()
    try server.query("CREATE DATABASE prism")
    try server.query("CREATE TABLE prism.shop (id Int64) ENGINE = Memory")
    let output = ClickHouseOutput(server.options(), name: "house")
    let reports = try await Self.reports([1, 2])
    let failure = await #expect(throws: OutputFailure.self) { try await output.deliver(reports) }
    #expect(failure?.description.hasPrefix("ClickHouse answered with its error ") == true)
    try server.query("DROP TABLE prism.shop")
    #expect(try await output.deliver(reports).isEmpty)
    #expect(try server.query("SELECT count() FROM prism.shop FINAL") == "2\n")
  }
}

@Suite("The output clickhouse, on servers that a test scripts", .timeLimit(.minutes(1)))
struct ScriptedClickHouseTests {
  private static func output(
    _ answer: @escaping @Sendable (HTTPRequest) -> HTTPResponse,
    _ body: (ClickHouseOutput, [StoredReport]) async throws -> Void
  ) async throws {
    let store = MemoryPacketStore()
    _ = try await store.take(StoreRig.packet([1, 2]))
    let reports = try await store.outputSource("x").next(after: 0, limit: 100)
    let server = try HTTPServer(
      listener: ListeningSocket(address: "127.0.0.1:0"), options: .init(), gate: { _ in .take() },
      handler: { answer($0) })
    do {
      try await body(ClickHouseOutput(.init(url: "http://127.0.0.1:\(server.port)"), name: "house"), reports)
    } catch {
      await server.stop()
      throw error
    }
    await server.stop()
  }

  private static let header = (name: "X-ClickHouse-Server-Display-Name", value: "house")

  @Test("an empty 200 to an insert that is not the server's takes no report") func emptyAnswer() async throws {
    try await Self.output { request in
      let isVersion = request.body == Array("SELECT version()".utf8)
      return HTTPResponse(
        status: 200, contentType: "text/plain", headers: isVersion ? [Self.header] : [], text: isVersion ? "24.8.1" : ""
      )
    } _: { output, reports in
      let failure = await #expect(throws: OutputFailure.self) { try await output.deliver(reports) }
      #expect(failure?.taken == 0 && failure?.refused.isEmpty == true)
    }
  }

  @Test(
    "an answer that is not the server's takes no report",
    arguments: [
      (200, "<html>sign in</html>"), (200, "24.8.1"), (502, "bad gateway"), (302, ""), (200, "Code: 241. DB"),
    ])
  func strange(status: Int, text: String) async throws {
    try await Self.output { _ in
      HTTPResponse.refusal(status, text)
    } _: { output, reports in
      let failure = await #expect(throws: OutputFailure.self) { try await output.deliver(reports) }
      #expect(failure?.taken == 0 && failure?.refused.isEmpty == true)
    }
  }

  @Test("a newer server gets a token that tells two pages with the same first report apart") func tokens()
    async throws
  {
    // Another collector's, of the same ids.
    func others(_ reports: [StoredReport]) -> [StoredReport] {
      var others = reports
      for index in others.indices { others[index].packetID += "0" }
      return others
    }
    let queries = Mutex<[String]>([])
    try await Self.output { request in
      if request.body == Array("SELECT version()".utf8) {
        return HTTPResponse(status: 200, contentType: "text/plain", headers: [Self.header], text: "24.8.1.1")
      }
      queries.withLock { $0.append(request.parameter("insert_deduplication_token") ?? "") }
      return HTTPResponse(status: 200, contentType: "text/plain", headers: [Self.header], text: "")
    } _: { output, reports in
      for page in [reports, Array(reports.prefix(1)), reports, others(reports)] { _ = try await output.deliver(page) }
    }
    let tokens = queries.withLock { $0 }
    #expect(
      tokens.count == 4 && Set(tokens).count == 3 && tokens[0] == tokens[2] && tokens[0] != tokens[1]
        && tokens[0].hasPrefix("house-"))
  }
}
