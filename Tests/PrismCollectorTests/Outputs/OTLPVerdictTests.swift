import PrismBase
import PrismConfig
import PrismCurl
import PrismHTTP
import PrismProtocol
import Synchronization
import Testing

@testable import PrismCollector
@testable import PrismOutputs

/// The effect of answers on reports: of an OTLP backend, and of a proxy in its place.
@Suite("Answers to the output otlp", .timeLimit(.minutes(2)))
struct OTLPVerdictTests {
  enum Meaning: Equatable {
    case taken(Int)
    case refused, tooLarge, held
  }

  private static func meaning(_ verdict: OTLPVerdict) -> Meaning {
    switch verdict {
    case .taken(let refused, _): .taken(refused)
    case .refused: .refused
    case .tooLarge: .tooLarge
    case .held: .held
    }
  }

  private static let json = "application/json", protobuf = "application/x-protobuf"
  private static let partial = #"{"partialSuccess":{"rejectedLogRecords":"2","errorMessage":"old"}}"#

  @Test(
    "only OTLP's own answer about these records skips some of them",
    arguments: [
      (200, "", "", Meaning.held), (204, "", "", .held), (200, "text/plain", "", .held), (202, json, "", .held),
      (201, "", "", .taken(0)), (200, json, "", .taken(0)), (200, json, "{}", .taken(0)),
      (200, json, #"{"partialSuccess":{}}"#, .taken(0)), (200, json, partial, .taken(2)),
      (200, json, #"{"partial_success":{"rejected_log_records":"2","error_message":"old"}}"#, .taken(2)),
      (200, json, #"{"error":"please sign in"}"#, .held),
      (200, protobuf, "", .taken(0)), (200, protobuf, "\n\u{7}\u{8}\u{2}\u{12}\u{3}old", .taken(2)),
      (200, protobuf, "nonsense", .held), (200, "text/html", "<p>Sign in", .held), (200, "text/html", "", .held),
      (200, json, "[]", .held), (200, json, "<p>", .held), (200, "text/plain", "ok", .held),
      (400, json, #"{"code":3,"message":"bad"}"#, .refused), (400, json, #"{"code":3}"#, .refused),
      (400, json, #"{"code":3,"message":"bad","details":[]}"#, .refused),
      (400, protobuf, "\u{8}\u{3}\u{12}\u{3}bad", .refused), (400, protobuf, "bad request", .held),
      (400, json, #"{"code":14,"message":"starting"}"#, .held), (400, json, #"{"code":400,"message":"bad"}"#, .held),
      (400, json, #"{"message":"Bad Request"}"#, .held), (400, json, #"{"error":"blocked"}"#, .held),
      (400, json, #"{"code":3,"message":"bad","waf":1}"#, .held), (400, "text/html", "<h1>400", .held),
      (400, "", "", .held), (413, "text/html", "<h1>413", .tooLarge), (413, "", "", .tooLarge),
    ])
  func table(status: Int, mediaType: String, body: String, meaning: Meaning) {
    let answer = CurlClient.Answer(status: status, headers: ["content-type": mediaType], body: Array(body.utf8))
    #expect(Self.meaning(OTLPVerdict(answer, .logs)) == meaning)
  }

  @Test("every other status holds the reports, also with a body of OTLP")
  func statuses() {
    for status in [0] + Array(100..<200) + Array(300..<600) where status != 400 && status != 413 {
      let body = Array(#"{"code":3,"message":"bad"}"#.utf8)
      let answer = CurlClient.Answer(status: status, headers: ["content-type": Self.json], body: body)
      guard case .held(let cause) = OTLPVerdict(answer, .logs) else {
        Issue.record("\(status) decides on reports")
        continue
      }
      #expect(cause.hasPrefix("answers \(status) (application/json): "))
    }
  }

  private static func reports(_ numbers: ClosedRange<Int>) async throws -> [StoredReport] {
    let store = MemoryPacketStore()
    _ = try await store.take(StoreRig.packet(Array(numbers)))
    return try await store.outputSource("x").next(after: 0, limit: 1000)
  }

  private static func numbers(in request: HTTPRequest) -> [Int] {
    let body = (try? JSONValue(parsing: request.body)) ?? .null
    let records = (body["resourceLogs"]?.array ?? []).flatMap { $0["scopeLogs"]?.array ?? [] }
      .flatMap { $0["logRecords"]?.array ?? [] }
    return records.compactMap { record in
      record["body"]?["kvlistValue"]?["values"]?.array?.first { $0["key"] == "n" }?["value"]?["intValue"]?.string
        .flatMap { Int($0) }
    }
  }

  @Test("if a proxy answers in the backend's place, all reports arrive once after it is mended, and the cause is said")
  func mended() async throws {
    let answer = Mutex(HTTPResponse.otlp(200))
    let taken = Mutex<[Int]>([])
    let server = try HTTPServer(listener: ListeningSocket(address: "127.0.0.1:0")) { request in
      let now = answer.withLock { $0 }
      if now.status == 200, now.body.isEmpty { taken.withLock { $0 += Self.numbers(in: request) } }
      return now
    }
    let (rig, store) = (StoreRig(), MemoryPacketStore())
    _ = try await store.take(StoreRig.packet(Array(1...20)))
    let source = store.outputSource("otlp")
    let output = OTLPOutput(.init(url: "http://127.0.0.1:\(server.port)", encoding: .json))
    let runner = OutputRunner("otlp", from: source, to: output, time: SystemTime(), log: rig.log)
    let html = { (status: Int) in HTTPResponse(status: status, contentType: "text/html", text: "<p>not here") }
    for status in [200, 301, 302, 307, 400, 401, 402, 403, 404, 405, 407, 410, 413, 415, 421, 422, 500, 502] {
      answer.withLock { $0 = html(status) }
      let running = Task { await runner.run() }
      while await runner.figures.holds?.contains("answers \(status) (text/html): ") != true { await Task.yield() }
      running.cancel()
      await running.value
    }
    #expect(try await source.cursor() == 0)
    #expect(await runner.figures.refused == 0)
    answer.withLock { $0 = HTTPResponse.otlp(200) }
    let running = Task { await runner.run() }
    while try await source.cursor() < 20 { await Task.yield() }
    running.cancel()
    await running.value
    #expect(taken.withLock { $0 } == Array(1...20))
    let figures = await runner.figures
    #expect(figures.holds == nil && figures.delivered == 20 && figures.dead.letters == 0)
    #expect(rig.logged.count { $0.contains("an output takes reports again") } == 1)
    await server.stop()
  }

  @Test(
    "413 halves the request down to one report, which then waits; the others arrive, and later requests are smaller")
  func tooLarge() async throws {
    let requests = Mutex(0)
    let taken = Mutex<[Int]>([])
    let limit = Mutex(2)
    let server = try HTTPServer(listener: ListeningSocket(address: "127.0.0.1:0")) { request in
      let numbers = Self.numbers(in: request)
      requests.withLock { $0 += 1 }
      if numbers.count > 2 || numbers.contains(6) && limit.withLock({ $0 }) < 6 { return HTTPResponse(status: 413) }
      taken.withLock { $0 += numbers }
      return HTTPResponse.otlp(200)
    }
    let output = OTLPOutput(.init(url: "http://127.0.0.1:\(server.port)", encoding: .json))
    let page = try await Self.reports(1...8)
    let failure = await #expect(throws: OutputFailure.self) { try await output.deliver(page) }
    #expect(failure?.taken == 5 && failure?.refused == [])
    #expect(failure?.description.contains("/v1/logs answers 413: raise the size") == true, "\(failure as Any)")
    #expect(taken.withLock { $0 } == Array(1...5))
    limit.withLock { $0 = 6 }
    #expect(try await output.deliver(page) == [])
    #expect(taken.withLock { $0 } == Array(1...8))
    let before = requests.withLock { $0 }
    #expect(try await output.deliver(page) == [])
    #expect(requests.withLock { $0 } - before <= 8, "no request is as large as one that was too large")
    await output.close()
    await server.stop()
  }
}
