import Foundation
import PrismAdmission
import PrismConfig
import PrismLinux
import PrismProtocol
import Testing

@Suite("HTTP on the ingest socket")
struct IngestHTTPTests {
  private static func post(_ body: String, headers: String = "", path: String = "/v1/reports") -> String {
    "POST \(path) HTTP/1.1\r\nHost: prism\r\n\(headers)Content-Length: \(body.utf8.count)\r\n\r\n\(body)"
  }

  private static let close = "Connection: close\r\n"
  private static let good = #"{"type":"net","meta":{"ms":12},"reportId":"good"}"#
  private static let stored = #"{"status":"stored","reportId":"good"}"#

  /// The status and the body of what comes back until the connection ends.
  private func exchange(_ request: String, piece: Int = .max, _ rig: IngestRig) async throws -> (
    status: Int, body: String
  ) {
    let client = try IngestClient(rig.path)
    try await client.send(request, piece: piece)
    let answer = try await client.rest()
    let status = Int(answer.dropFirst("HTTP/1.1 ".count).prefix(3)) ?? 0
    return (status, answer.split(separator: "\r\n\r\n", maxSplits: 1).last.map { String($0) } ?? "")
  }

  @Test("a report is stored, however the request is cut", arguments: [1, 10, Int.max])
  func storesOne(piece: Int) async throws {
    try await withIngestRig { rig in
      let answer = try await exchange(Self.post(Self.good, headers: Self.close), piece: piece, rig)
      #expect(answer.status == 200)
      #expect(answer.body == Self.stored + "\n")
    }
  }

  @Test("many are answered one a line, refused ones among them with 200")
  func storesMany() async throws {
    try await withIngestRig { rig in
      let body = [Self.good, "bad", Self.good, ""].joined(separator: "\n")
      let answer = try await exchange(Self.post(body, headers: Self.close), rig)
      #expect(answer.status == 200)
      let codes = try answer.body.split(separator: "\n").map { try JSONValue(parsing: String($0))["code"]?.string }
      #expect(codes == [nil, "bad_request", nil])
    }
  }

  @Test("one report over several lines is one report")
  func prettyPrinted() async throws {
    try await withIngestRig { rig in
      let body = "{\r\n  \"type\": \"net\",\n  \"meta\": {\n    \"a\": 1,\n    \"b\": [1,\n 2]\n  }\n}\n"
      let answer = try await exchange(Self.post(body, headers: Self.close), rig)
      #expect(answer.status == 200)
      let batch = rig.sink.commits[0][0]
      #expect(batch.rows.count == 1)
      #expect(!batch.arena.contains(0x0A) && !batch.arena.contains(0x0D))
    }
  }

  @Test(
    "a single refused report gives its status",
    arguments: [
      ("bad", 400), (#"{"type":"none","meta":{"a":1}}"#, 400),
      (#"{"namespace":"none","type":"net","meta":{"a":1}}"#, 400),
      (#"{"type":"net","meta":{"a":"\#(String(repeating: "x", count: 10_240))"}}"#, 413), ("", 400), ("\n\n", 400),
      (#"{"type":"net","meta":{"a":1},"payloadBytes":4}"# + "\nabc", 400),
    ])
  func refusals(body: String, status: Int) async throws {
    try await withIngestRig { rig in
      let answer = try await exchange(Self.post(body, headers: Self.close), rig)
      #expect(answer.status == status)
      #expect(rig.sink.rowCount == 0)
    }
  }

  @Test(
    "the store's refusals are 429 and 503",
    arguments: [(RefusalCode.storeFull, 429), (.diskFull, 503), (.unknown, 503)])
  func storeRefusals(code: RefusalCode, status: Int) async throws {
    try await withIngestRig { rig in
      rig.sink.fail(Refusal(code, "no", retryMilliseconds: 1500))
      let client = try IngestClient(rig.path)
      try await client.send(Self.post(Self.good, headers: Self.close))
      let answer = try await client.rest()
      #expect(answer.hasPrefix("HTTP/1.1 \(status) "))
      #expect(answer.contains("\r\nRetry-After: 2\r\n"))
    }
  }

  @Test("a client can ask for the limits and the common information")
  func questions() async throws {
    try await withIngestRig { rig in
      let ask = { (path: String) in "GET \(path) HTTP/1.1\r\nHost: prism\r\nConnection: close\r\n\r\n" }
      let limits = try await exchange(ask("/v1/limits"), rig)
      #expect(limits.status == 200)
      #expect(limits.body == #"{"metaByte":10240,"payloadByte":1048576}"# + "\n")
      let common = try await exchange(ask("/v1/common?x=y"), rig)
      #expect(try JSONValue(parsing: common.body)["SYS_DEVICE_ID"] == "device-1")
    }
  }

  @Test("a connection is kept, and pipelined requests are answered in their order")
  func pipelines() async throws {
    try await withIngestRig { rig in
      let requests =
        Self.post(Self.good) + "GET /v1/limits HTTP/1.1\r\nHost: p\r\n\r\n" + Self.post("bad")
        + Self.post(Self.good, headers: Self.close)
      let client = try IngestClient(rig.path)
      try await client.send(requests)
      let statuses = try await client.rest().components(separatedBy: "HTTP/1.1 ").dropFirst().map { $0.prefix(3) }
      #expect(statuses == ["200", "200", "400", "200"])
      #expect(rig.sink.rowCount == 2)
    }
  }

  @Test("chunked bodies are taken, with extensions and trailers", arguments: [1, 3, Int.max])
  func chunked(piece: Int) async throws {
    try await withIngestRig { rig in
      let (head, tail) = (Self.good.prefix(20), Self.good.dropFirst(20))
      let request =
        "POST /v1/reports HTTP/1.1\r\nHost: p\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        + "14;x=y\r\n\(head)\r\n\(String(tail.utf8.count, radix: 16))\r\n\(tail)\r\n0\r\nTrailer: t\r\n\r\n"
      let answer = try await exchange(request, piece: piece, rig)
      #expect(answer.status == 200 && answer.body == Self.stored + "\n")
    }
  }

  @Test("a client that asks whether to continue gets 100 Continue")
  func expectContinue() async throws {
    try await withIngestRig { rig in
      let client = try IngestClient(rig.path)
      let head = Self.post(Self.good, headers: Self.close + "Expect: 100-continue\r\n").dropLast(Self.good.utf8.count)
      try await client.send(String(head))
      // The head was read: a body that comes with it is asked for no more.
      #expect(await IngestRig.eventually { await rig.server.counters.memoryBytes > 0 })
      try await client.send(Self.good)
      #expect(try await client.rest().hasPrefix("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"))
    }
  }

  @Test(
    "what could be understood in two ways, or is not there, is refused and the connection closed",
    arguments: [
      ("GET / HTTP/1.1\r\nHost: p\r\n\r\n", 404), ("GET /v1/reports HTTP/1.1\r\nHost: p\r\n\r\n", 405),
      ("POST /v1/limits HTTP/1.1\r\nHost: p\r\n\r\n", 405), ("GET /v1/limits HTTP/1.1\r\n\r\n", 400),
      ("GET /v1/limits HTTP/1.1\r\nHost: p\r\nHost: q\r\n\r\n", 400),
      ("GET /v1/limits HTTP/2.0\r\nHost: p\r\n\r\n", 505),
      ("GET  /v1/limits HTTP/1.1\r\nHost: p\r\n\r\n", 400), ("GET /v1/limits HTTP/1.1\r\nHost : p\r\n\r\n", 400),
      ("GET /v1/limits HTTP/1.1\r\n Host: p\r\n\r\n", 400), ("GET /v1/limits HTTP/1.1\r\nHost: p\rx\r\n\r\n", 400),
      ("POST /v1/reports HTTP/1.1\r\nHost: p\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
      ("POST /v1/reports HTTP/1.1\r\nHost: p\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400),
      ("POST /v1/reports HTTP/1.1\r\nHost: p\r\nContent-Length: +1\r\n\r\n", 400),
      ("POST /v1/reports HTTP/1.1\r\nHost: p\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
      ("POST /v1/reports HTTP/1.1\r\nHost: p\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
      ("POST /v1/reports HTTP/1.1\r\nHost: p\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\n", 415),
      ("POST /v1/reports HTTP/1.1\r\nHost: p\r\nContent-Length: 99999999999999999999\r\n\r\n", 413),
      ("POST /v1/reports HTTP/1.1\r\nHost: p\r\nTransfer-Encoding: chunked\r\n\r\nxx\r\n", 400),
      ("POST /v1/reports HTTP/1.1\r\nHost: p\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", 400),
      ("GET /\(String(repeating: "x", count: 17_000)) HTTP/1.1\r\nHost: p\r\n\r\n", 431),
    ])
  func strict(request: String, status: Int) async throws {
    try await withIngestRig { rig in
      let answer = try await exchange(request, rig)
      #expect(answer.status == status)
    }
  }

  @Test(
    "a 405 names the methods that the path takes, and no others",
    arguments: [
      ("GET", "/v1/reports", "POST"), ("POST", "/v1/limits", "GET"), ("HEAD", "/v1/common", "GET"),
      ("PUT", "/v1/records/part", "GET"), ("POST", "/v1/records/part/a", "GET, PUT, PATCH, DELETE"),
    ])
  func allow(method: String, path: String, allow: String) async throws {
    try await withIngestRig { rig in
      let client = try IngestClient(rig.path)
      try await client.send("\(method) \(path) HTTP/1.1\r\nHost: p\r\n\r\n")
      let answer = try await client.rest()
      #expect(answer.hasPrefix("HTTP/1.1 405 ") && answer.contains("\r\nAllow: \(allow)\r\n"), "\(answer)")
    }
  }

  @Test("a body of 10,000 lines is taken, one more is 413 and nothing of it is stored", arguments: [10_000, 10_001])
  func manyLines(count: Int) async throws {
    try await withIngestRig { rig in
      let body = String(repeating: #"{"type":"net","meta":{"ms":12}}"# + "\n", count: count)
      let answer = try await exchange(Self.post(body, headers: Self.close), rig)
      #expect(answer.status == (count > 10_000 ? 413 : 200))
      #expect(rig.sink.rowCount == (count > 10_000 ? 0 : count))
    }
  }

  @Test("line feeds of a payload are no lines of the body")
  func payloadOfLineFeeds() async throws {
    try await withIngestRig { rig in
      let line = #"{"type":"net","meta":{"ms":12},"payloadBytes":20000}"# + "\n"
      let answer = try await exchange(
        Self.post(line + String(repeating: "\n", count: 20_000), headers: Self.close), rig)
      #expect(answer.status == 200)
      #expect(rig.sink.rowCount == 1)
    }
  }

  @Test("too many connections are 503")
  func busy() async throws {
    let none: (inout Snapshot) -> Void = { $0.daemon.ingest.maxConnections = 0 }
    try await withIngestRig(none) { rig in
      let client = try IngestClient(rig.path)
      let answer = try await client.rest()
      #expect(answer.contains(#""code":"busy""#))
    }
  }
}
