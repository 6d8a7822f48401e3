import PrismBase
import PrismConfig
import PrismHTTP
import PrismProtocol
import Synchronization
import Testing

@testable import PrismCollector
@testable import PrismOutputs

@Suite("The output otlp", .timeLimit(.minutes(2)))
struct OTLPOutputTests {
  private static func reports(_ numbers: [Int]) async throws -> [StoredReport] {
    let store = MemoryPacketStore()
    _ = try await store.take(StoreRig.packet(numbers))
    return try await store.outputSource("x").next(after: 0, limit: 100)
  }

  /// A report whose meta has `members` beside what prism adds.
  private static func report(_ type: String, _ members: String) -> StoredReport {
    let head = #"{"MONITOR_TYPE":"otel-\#(type)","REPORT_ID":"r","CREATE_TIME":1,"SYS_BRAND":"x","#
    return StoredReport(
      id: 1, device: "d", namespace: "otel", kind: "meta", type: type, reportID: "r", createdTime: 1, receivedTime: 2,
      packetID: "p", chainIsBroken: false, meta: Array((head + members + "}").utf8))
  }

  private static let resource = #""OTEL_RESOURCE":{"attributes":[{"key":"run","value":{"stringValue":"till"}}]}"#
  private static let scope = #""OTEL_SCOPE":{"name":"shop","version":"1.0"}"#

  @Test(
    "what came over OTLP goes out as it came, without what prism added",
    arguments: [
      (
        "otel.log", OTLPSignal.logs,
        #""timeUnixNano":"1","severityNumber":9,"body":{"stringValue":"a"},"traceId":"0af7651916cd43dd""#
      ),
      ("sale", .logs, #""timeUnixNano":"1","eventName":"sale","attributes":[{"key":"n","value":{"intValue":"7"}}]"#),
      ("otel.span", .traces, #""traceId":"0a","spanId":"0b","name":"pay","kind":3,"status":{"code":2},"flags":1"#),
      ("otel.metric", .metrics, #""name":"sales","sum":{"dataPoints":[{"asInt":"600"}],"isMonotonic":true}"#),
    ])
  func asItCame(type: String, signal: OTLPSignal, members: String) throws {
    let report = Self.report(type, "\(Self.resource),\(Self.scope),\(members)")
    #expect(report.signal == signal)
    let names = signal.names
    let scope = Self.scope.replacing("OTEL_SCOPE", with: "scope")
    let resource = Self.resource.replacing("OTEL_RESOURCE", with: "resource")
    let inner = #"{\#(scope),"\#(names.records)":[{\#(members)}]}"#
    let outer = #"{\#(resource),"\#(names.scopes)":[\#(inner)]}"#
    let expected = #"{"\#(names.resources)":[\#(outer)]}"#
    #expect(String(decoding: OTLPRequest.body(signal, [report], .json).bytes, as: UTF8.self) == expected)
  }

  @Test("another report is a log record of its app, with its severity, the parts of an exception and its own values")
  func conventions() throws {
    var report = Self.report(
      "appCrash",
      #""APP_NAME":"shop","APP_VERSION":"2.1","reason":"KeyError","message":"price","stack":"f","code":7,"deep":{"a":1}"#
    )
    report.namespace = "shop"
    let request = try JSONValue(parsing: OTLPRequest.body(.logs, [report], .json).bytes)
    let outer = try #require(request["resourceLogs"]?.array?.first)
    let record = try #require(outer["scopeLogs"]?.array?.first?["logRecords"]?.array?.first)
    func values(_ json: JSONValue) -> [String: JSONValue] {
      let pairs = (json["attributes"]?.array ?? []).map { ($0["key"]?.string ?? "", $0["value"] ?? .null) }
      return Dictionary(uniqueKeysWithValues: pairs)
    }
    #expect(values(outer["resource"] ?? .null)["service.name"] == ["stringValue": "shop"])
    #expect(values(outer["resource"] ?? .null)["service.version"] == ["stringValue": "2.1"])
    #expect(record["severityNumber"] == 21 && record["severityText"] == "FATAL")
    let attributes = values(record)
    #expect(attributes["exception.type"] == ["stringValue": "KeyError"])
    #expect(attributes["exception.message"] == ["stringValue": "price"])
    #expect(attributes["exception.stacktrace"] == ["stringValue": "f"] && attributes["code"] == ["intValue": "7"])
    #expect(["deep", "SYS_BRAND", "APP_NAME", "REPORT_ID"].allSatisfy { attributes[$0] == nil })
  }

  @Test(
    "protobuf: each form of a field has the bytes of its encoding; what is no such value is left out",
    arguments: [
      (#"{"timeUnixNano":"1"}"#, "090100000000000000"), (#"{"severityNumber":9}"#, "1009"),
      (#"{"severityText":"hé"}"#, "1a0368c3a9"), (#"{"body":{"boolValue":true}}"#, "2a021001"),
      (#"{"body":{"intValue":"-1"}}"#, "2a0b18ffffffffffffffffff01"),
      (#"{"body":{"doubleValue":1.5}}"#, "2a0921000000000000f83f"),
      (#"{"body":{"bytesValue":"AQI="}}"#, "2a043a020102"), (#"{"flags":1}"#, "4501000000"),
      (#"{"traceId":"0af7"}"#, "4a020af7"), (#"{"traceId":"x","severityNumber":"many","no":1}"#, ""),
      (
        #"{"attributes":[{"key":"a","value":{"arrayValue":{"values":[{"intValue":"1"}]}}}]}"#,
        "320b0a01611206" + "2a040a021801"
      ),
    ])
  func protobuf(json: String, bytes: String) throws {
    var writer = OTLPWriter(isJSON: false)
    writer.value(OTLPSignal.logs.lists.records, Array("[\(json)]".utf8).span, at: 0)
    #expect(Hex.encode(writer.bytes.dropFirst(2)) == bytes, "behind the tag and the length of the record")
  }

  @Test("protobuf: numbers of a list are packed")
  func packed() throws {
    var writer = OTLPWriter(isJSON: false)
    writer.value(
      OTLPMessage.exponentialPoint["positive"], Array(#"{"bucketCounts":["1","2"],"offset":-1}"#.utf8).span, at: 0)
    #expect(Hex.encode(writer.bytes) == "4206" + "12020102" + "0801")
  }

  @Test("records share their resource and their scope with those beside them, in their order")
  func sharing() throws {
    let other = Self.scope.replacing("shop", with: "till")
    let reports = [Self.scope, Self.scope, other, Self.scope].enumerated().map { index, scope in
      Self.report("otel.log", #"\#(Self.resource),\#(scope),"timeUnixNano":"\#(index)""#)
    }
    let request = try JSONValue(parsing: OTLPRequest.body(.logs, reports, .json).bytes)
    let resources = try #require(request["resourceLogs"]?.array)
    #expect(resources.count == 1)
    let scopes = try #require(resources[0]["scopeLogs"]?.array)
    let times = scopes.map { scope in (scope["logRecords"]?.array ?? []).compactMap { $0["timeUnixNano"]?.string } }
    #expect(times == [["0", "1"], ["2"], ["3"]])
  }

  @Test("after a failure only what the other side lacks is sent again")
  func onlyTheRest() async throws {
    let requests = Mutex<[String]>([])
    let server = try HTTPServer(listener: ListeningSocket(address: "127.0.0.1:0")) { request in
      let isFirst = requests.withLock { requests in
        requests.append(request.path)
        return requests.count { $0 == request.path } == 1
      }
      return HTTPResponse.otlp(isFirst && request.path == OTLPSignal.traces.path ? 503 : 200)
    }
    let output = OTLPOutput(.init(url: "http://127.0.0.1:\(server.port)"))
    var some = ["otel.metric", "otel.log", "otel.span"].map { Self.report($0, #""name":"a""#) }
    for index in some.indices { some[index].id = Int64(index + 1) }
    await #expect(throws: OutputFailure.self) { try await output.deliver(some) }
    #expect(try await output.deliver(some) == [])
    #expect(requests.withLock { $0 } == ["/v1/logs", "/v1/traces", "/v1/traces", "/v1/metrics"])
    await output.close()
    await server.stop()
  }

  @Test("what was taken before a failure does not come again after a stop")
  func stopped() async throws {
    let server = try HTTPServer(listener: ListeningSocket(address: "127.0.0.1:0")) { request in
      HTTPResponse.otlp(request.path == OTLPSignal.traces.path ? 503 : 200)
    }
    let (store, rig) = (MemoryPacketStore(), StoreRig())
    _ = try await store.take(StoreRig.packet([1, 2], type: "otel.log"))
    _ = try await store.take(StoreRig.packet([3], type: "otel.span"))
    _ = try await store.take(StoreRig.packet([4], type: "otel.log"))
    let source = store.outputSource("x")
    let output = OTLPOutput(.init(url: "http://127.0.0.1:\(server.port)"))
    let runner = OutputRunner("x", from: source, to: output, time: SystemTime(), log: rig.log)
    let running = Task { await runner.run() }
    while await runner.figures.failures < 2 { await Task.yield() }
    running.cancel()
    await running.value
    #expect(try await source.cursor() == 2)
    #expect(await runner.figures.delivered == 2)
    await server.stop()
  }

  @Test("each signal goes to its path, and what an answer refuses in part is counted and not sent again")
  func partialSuccess() async throws {
    let paths = Mutex<[String]>([])
    let server = try HTTPServer(listener: ListeningSocket(address: "127.0.0.1:0")) { request in
      paths.withLock { $0.append(request.path) }
      let signal = OTLPSignal.allCases.first { $0.path == request.path }
      let text = #"{"partialSuccess":{"\#(signal?.rejectedName ?? "")":"1","errorMessage":"too old"}}"#
      return HTTPResponse(status: 200, contentType: "application/json", text: text)
    }
    let output = OTLPOutput(.init(url: "http://127.0.0.1:\(server.port)"))
    let some = ["otel.metric", "otel.log", "otel.span", "otel.log"].map { Self.report($0, #""name":"a""#) }
    var numbered = some
    for index in numbered.indices { numbered[index].id = Int64(index + 1) }
    let refused = try await output.deliver(numbered)
    #expect(refused.map(\.id) == [2, 4, 3, 1], "which log record it is the answer does not say")
    #expect(refused.first?.cause.hasPrefix("1 of the 2 reports of its request, ") == true)
    #expect(refused.first?.cause.contains(": too old; requeue") == true && refused.last?.cause == "too old")
    #expect(refused.map(\.isDelivered) == [false, true, false, false], "two log records, one of which was taken")
    #expect(paths.withLock { $0 } == ["/v1/logs", "/v1/traces", "/v1/metrics"])
    _ = try await output.deliver(numbered)
    #expect(paths.withLock { $0.count } == 3 + 4, "the next requests have one report")
    await output.close()
    await server.stop()
  }

  @Test("of a request that is refused in part the rest counts as delivered, and all of it can be handed on again")
  func partialCounts() async throws {
    let server = try HTTPServer(listener: ListeningSocket(address: "127.0.0.1:0")) { _ in
      let text = #"{"partialSuccess":{"rejectedLogRecords":"1","errorMessage":"too old"}}"#
      return HTTPResponse(status: 200, contentType: "application/json", text: text)
    }
    let (store, rig) = (MemoryPacketStore(), StoreRig())
    _ = try await store.take(StoreRig.packet(Array(1...50)))
    let (source, output) = (store.outputSource("x"), OTLPOutput(.init(url: "http://127.0.0.1:\(server.port)")))
    let runner = OutputRunner("x", from: source, to: output, time: SystemTime(), log: rig.log)
    let running = Task { await runner.run() }
    while await runner.figures.dead.letters == 0 { await Task.yield() }
    running.cancel()
    await running.value
    let figures = await runner.figures
    #expect(figures.delivered == 49 && figures.refused == 1 && figures.dead == DeadCount(letters: 50, refused: 1))
    let dead = try await source.dead(after: 0, limit: 100, onlyRequeued: false)
    #expect(dead.count == 50 && dead.allSatisfy { $0.cause.hasPrefix("1 of the 50 reports") })
    await server.stop()
  }

  @Test("otlp: log records with the meta as their body; 503 is tried again, 400 skips one report and counts it")
  func otlp() async throws {
    let bodies = Mutex<[JSONValue]>([])
    let status = Mutex(200)
    let server = try HTTPServer(listener: ListeningSocket(address: "127.0.0.1:0")) { request in
      guard request.path == "/v1/logs", let body = try? JSONValue(parsing: request.body) else {
        return HTTPResponse.otlp(404)
      }
      let isPoison = String(decoding: request.body, as: UTF8.self).contains(#""intValue":"13""#)
      let code = isPoison ? 400 : status.withLock { $0 }
      if code == 200 { bodies.withLock { $0.append(body) } }
      guard isPoison else { return HTTPResponse.otlp(code) }
      return HTTPResponse(status: code, contentType: "application/json", text: #"{"code":3,"message":"no 13"}"#)
    }
    let output = OTLPOutput(.init(url: "http://127.0.0.1:\(server.port)", encoding: .json))
    status.withLock { $0 = 503 }
    let some = try await Self.reports([1, 2])
    await #expect(throws: OutputFailure("/v1/logs answers 503 (application/x-protobuf): it is tried again")) {
      try await output.deliver(some)
    }
    status.withLock { $0 = 200 }
    #expect(try await output.deliver(some) == [])
    #expect(try await output.deliver(try await Self.reports([12, 13, 14])).map(\.cause).count == 1)
    let records = bodies.withLock { $0 }.flatMap { $0["resourceLogs"]?.array ?? [] }
      .flatMap { $0["scopeLogs"]?.array ?? [] }.flatMap { $0["logRecords"]?.array ?? [] }
    #expect(records.count == 4)
    #expect(records.first?["timeUnixNano"]?.string == "1000000" && records.first?["eventName"]?.string == "t")
    let members = records.first?["body"]?["kvlistValue"]?["values"]?.array ?? []
    #expect(members.contains(["key": "n", "value": ["intValue": "1"]]))
    await output.close()
    await server.stop()
  }

  @Test(
    "values of JSON in OTLP's form",
    arguments: [
      ("null", "{}"), ("true", #"{"boolValue":true}"#), ("12", #"{"intValue":"12"}"#), ("1.5", #"{"doubleValue":1.5}"#),
      (#""a""#, #"{"stringValue":"a"}"#), ("[1]", #"{"arrayValue":{"values":[{"intValue":"1"}]}}"#),
      (#"{"k":null}"#, #"{"kvlistValue":{"values":[{"key":"k","value":{}}]}}"#),
    ])
  func values(json: String, expected: String) throws {
    var writer = OTLPWriter(isJSON: true)
    writer.anyValue(OTLPMessage.logRecord["body"], Array(json.utf8).span)
    #expect(String(decoding: writer.bytes, as: UTF8.self) == #""body":"# + expected)
  }
}

extension HTTPResponse {
  /// An empty message of protobuf.
  static func otlp(_ status: Int) -> HTTPResponse {
    HTTPResponse(status: status, headers: [("Content-Type", "application/x-protobuf")])
  }
}
