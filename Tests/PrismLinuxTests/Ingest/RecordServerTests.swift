import Foundation
import PrismAdmission
import PrismEngine
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismLinux

@Suite("Records on the ingest socket: watching and HTTP")
struct RecordServerTests {
  private static let part = "/v1/records/part?namespace=shop"
  private static func part(_ id: String) -> String { "/v1/records/part/\(id)?namespace=shop" }

  // MARK: Watching

  @Test("a quiet connection that watches a table gets a line for each commit, by another connection or by HTTP")
  func watches() async throws {
    try await withRecordServer { rig in
      _ = try await rig.put("a", #"{"n":1}"#)
      let client = try IngestClient(rig.path)
      try await client.send(#"{"watch":{"namespace":"shop","table":"part"}}"# + "\n")
      #expect(try await client.lines(1)[0]["watch"]?["generation"] == 1)
      _ = try await rig.put("b", #"{"n":1}"#)
      #expect(try await client.lines(1)[0]["changed"]?["ids"] == ["b"])
      _ = try await rig.put("x", "{}", in: "suit")
      #expect(try await rig.http("DELETE", Self.part("a")).status == 200)
      let told = try await client.lines(1)[0]["changed"]
      #expect(told?["ids"] == ["a"] && told?["generation"] == 3 && told?["table"] == "part")
    }
  }

  @Test("a program that puts into the table that it watches gets its own change, too")
  func ownChange() async throws {
    try await withRecordServer { rig in
      let client = try IngestClient(rig.path)
      try await client.send(
        #"{"watch":{"namespace":"shop","table":"part"}}"# + "\n"
          + #"{"put":{"namespace":"shop","table":"part","id":"a","fields":{}}}"# + "\n")
      let lines = try await client.lines(3)
      #expect(lines[0]["watch"]?["generation"] == 0)
      #expect(Set(lines.dropFirst().compactMap { $0.object?.first?.key }) == ["status", "changed"])
    }
  }

  @Test("a table that is not declared any more ends the watch in one line, without a change of it")
  func ended() async throws {
    try await withRecordServer { rig in
      let client = try IngestClient(rig.path)
      try await client.send(#"{"watch":{"namespace":"shop","table":"part"}}"# + "\n")
      _ = try await client.lines(1)
      await rig.engine.publish(RecordServerRig.snapshot(tables: ["suit"], generation: 2))
      await rig.server.configurationChanged()
      #expect(try await client.lines(1)[0]["ended"]?["code"] == "unknown_table")
      #expect(await rig.server.places.isEmpty)
    }
  }

  // MARK: HTTP

  @Test("a record is put, read, patched and deleted; its version is its ETag")
  func records() async throws {
    try await withRecordServer { rig in
      let put = try await rig.http("PUT", Self.part("a"), body: "{\n  \"n\": 1,\r\n  \"text\": \"x\"\n}\n")
      #expect(put.status == 200 && put.etag == "\"1\"" && put.json?["version"] == 1)
      let patched = try await rig.http("PATCH", Self.part("a"), body: #"{"text":null}"#)
      #expect(patched.status == 200 && patched.etag == "\"2\"")
      let read = try await rig.http("GET", Self.part("a"))
      #expect(read.status == 200 && read.etag == "\"2\"" && read.json?["record"]?["fields"] == ["n": 1])
      let known = try await rig.http("GET", Self.part("a"), ["If-None-Match": "\"2\""])
      #expect(known.status == 304 && known.body.isEmpty && known.etag == "\"2\"")
      #expect(try await rig.http("GET", Self.part("a"), ["If-None-Match": "\"1\""]).status == 200)
      #expect(try await rig.http("DELETE", Self.part("a")).status == 200)
      let gone = try await rig.http("GET", Self.part("a"))
      #expect(gone.status == 404 && gone.json?["record"]?.isNull == true && gone.etag == nil)
    }
  }

  @Test("an id may have any visible character, percent-encoded in the path")
  func ids() async throws {
    try await withRecordServer { rig in
      let id = #"a/b?c%d"e\f"#
      let path = id.addingPercentEncoding(withAllowedCharacters: .alphanumerics)!
      let put = try await rig.http("PUT", Self.part(path), body: "{}")
      #expect(put.status == 200)
      #expect(try await rig.http("GET", Self.part(path)).json?["record"]?["id"] == .string(id))
      for wrong in ["a%2", "%zz", "a%20b", "%00", "", "%ff"] {
        #expect(try await rig.http("GET", Self.part(wrong)).status == 400, "\(wrong)")
      }
    }
  }

  @Test("a table is listed by pages; the generation is its ETag")
  func lists() async throws {
    try await withRecordServer { rig in
      for id in ["a", "b", "c"] { _ = try await rig.put(id, "{}") }
      let page = try await rig.http("GET", Self.part + "&limit=2")
      #expect(page.etag == "\"3\"" && page.json?["more"] == true)
      #expect(page.json?["records"]?.array?.map { $0["id"] } == ["a", "b"])
      let rest = try await rig.http("GET", Self.part + "&after=b")
      #expect(rest.json?["records"]?.array?.map { $0["id"] } == ["c"])
      #expect(try await rig.http("GET", Self.part, ["If-None-Match": "\"3\""]).status == 304)
    }
  }

  @Test(
    "a change on a condition is made if it holds, else refused with 412",
    arguments: [
      ("PUT", "If-Match", "\"1\"", 200), ("PUT", "If-Match", "\"2\"", 412), ("PUT", "If-Match", "*", 200),
      ("PUT", "If-None-Match", "*", 412), ("PATCH", "If-Match", "\"2\"", 412), ("DELETE", "If-Match", "\"2\"", 412),
      ("DELETE", "If-Match", "W/\"1\"", 200), ("PUT", "If-Match", "1", 400), ("PUT", "If-None-Match", "\"1\"", 400),
      ("GET", "If-Match", "\"1\"", 400),
    ])
  func conditions(method: String, header: String, value: String, status: Int) async throws {
    try await withRecordServer { rig in
      _ = try await rig.put("a", #"{"n":1}"#)
      let body = method == "PUT" || method == "PATCH" ? #"{"n":2}"# : nil
      let answer = try await rig.http(method, Self.part("a"), [header: value], body: body)
      #expect(answer.status == status, "\(answer.body)")
      if status == 412 { #expect(answer.json?["code"] == "version_mismatch") }
      let isChanged = try await rig.http("GET", Self.part("a")).json?["record"]?["fields"] != ["n": 1]
      #expect(isChanged == (status == 200))
    }
  }

  @Test(
    "refusals are those of the socket, with their status; a wrong request says what is wrong",
    arguments: [
      ("GET", "/v1/records/car?namespace=shop", nil, 400, "unknown_table"),
      ("GET", "/v1/records/part?namespace=none", nil, 400, "unknown_namespace"),
      ("PUT", "/v1/records/part/d?namespace=shop", "{}", 429, "table_full"),
      ("PUT", "/v1/records/part/a?namespace=shop", "[]", 400, "bad_request"),
      ("PUT", "/v1/records/part/a?namespace=shop", #"{"a":1,"a":2}"#, 400, "bad_request"),
      ("PUT", "/v1/records/part/a?namespace=shop", #"{}},"delete":{"#, 400, "bad_request"),
      ("PUT", "/v1/records/part/a?namespace=shop", nil, 400, "bad_request"),
      ("DELETE", "/v1/records/part/a?namespace=shop", "{}", 400, "bad_request"),
      ("POST", "/v1/records/part/a?namespace=shop", "{}", 405, "bad_request"),
      ("PUT", "/v1/records/part?namespace=shop", "{}", 405, "bad_request"),
      ("GET", "/v1/records/part/a/b?namespace=shop", nil, 400, "bad_request"),
      ("GET", "/v1/records/part?namespace=shop&limit=0", nil, 400, "bad_request"),
      ("GET", "/v1/records/part?namespace=shop&limit=x", nil, 400, "bad_request"),
      ("GET", "/v1/records/part?namespace=shop&wait=61", nil, 400, "bad_request"),
      ("GET", "/v1/records/part?namespace=shop&colour=1", nil, 400, "bad_request"),
      ("GET", "/v1/records/part?namespace=shop&namespace=shop", nil, 400, "bad_request"),
      ("GET", "/v1/records/part/a?namespace=shop&wait=1", nil, 400, "bad_request"),
      (
        "PUT", "/v1/records/part/a?namespace=shop", "{\"a\":\"" + String(repeating: "x", count: 70_000) + "\"}", 413,
        nil
      ),
    ] as [(String, String, String?, Int, String?)])
  func refusals(method: String, target: String, body: String?, status: Int, code: String?) async throws {
    try await withRecordServer { rig in
      for id in ["a", "b", "c"] { _ = try await rig.put(id, "{}") }
      let answer = try await rig.http(method, target, body: body)
      #expect(answer.status == status, "\(answer.body)")
      if let code { #expect(answer.json?["code"] == .string(code)) }
      #expect((answer.headers["allow"] != nil) == (status == 405))
      #expect((answer.headers["retry-after"] != nil) == (status == 429))
    }
  }

  // MARK: The long poll

  @Test("a list that is still the known one waits, and is answered with the next change")
  func polls() async throws {
    try await withRecordServer { rig in
      _ = try await rig.put("a", "{}")
      let client = try IngestClient(rig.path)
      let request = RecordServerRig.request("GET", Self.part + "&wait=60", ["If-None-Match": "\"1\""])
      try await client.send(request)
      #expect(await IngestRig.eventually { await rig.isPolling })
      _ = try await rig.put("x", "{}", in: "suit")
      #expect(await rig.isPolling, "another table's change is no reason")
      _ = try await rig.put("b", "{}")
      let answer = RecordServerRig.answer(try await client.rest())
      #expect(answer.status == 200 && answer.etag == "\"2\"")
      #expect(answer.json?["records"]?.array?.count == 2)
      #expect(await IngestRig.eventually { await rig.server.places.isEmpty })
    }
  }

  @Test("a list that is another than the known one is answered at once, and so is one without a known one")
  func answersAtOnce() async throws {
    try await withRecordServer { rig in
      _ = try await rig.put("a", "{}")
      #expect(try await rig.http("GET", Self.part + "&wait=60", ["If-None-Match": "\"0\""]).status == 200)
      #expect(try await rig.http("GET", Self.part + "&wait=60").status == 200)
      #expect(await rig.server.places.isEmpty)
    }
  }

  @Test("without a change the answer is 304 once the time is over, and the connection goes on")
  func timesOut() async throws {
    try await withRecordServer { rig in
      _ = try await rig.put("a", "{}")
      let client = try IngestClient(rig.path)
      let poll = RecordServerRig.request("GET", Self.part + "&wait=30", ["If-None-Match": "\"1\""])
      try await client.send(
        poll.replacingOccurrences(of: "Connection: close\r\n", with: "") + RecordServerRig.request("GET", Self.part))
      #expect(await IngestRig.eventually { await rig.isPolling })
      #expect(await IngestRig.eventually { rig.time.sleeperCount > 0 })
      rig.time.advance(by: .seconds(29))
      #expect(rig.time.sleeperCount > 0)
      let stillWaits = await rig.isPolling
      #expect(stillWaits)
      rig.time.advance(by: .seconds(1))
      let answers = try await client.rest().components(separatedBy: "HTTP/1.1 ").dropFirst().map { $0.prefix(3) }
      #expect(answers == ["304", "200"])
    }
  }

  @Test("a daemon that stops answers those that wait")
  func stops() async throws {
    try await withRecordServer { rig in
      let client = try IngestClient(rig.path)
      try await client.send(RecordServerRig.request("GET", Self.part + "&wait=60", ["If-None-Match": "\"0\""]))
      #expect(await IngestRig.eventually { await rig.isPolling })
      let stopping = Task { await rig.server.stop() }
      #expect(RecordServerRig.answer(try await client.rest()).status == 304)
      await stopping.value
    }
  }
}
