import PrismHTTP
import PrismProtocol
import Testing

@testable import PrismCollector

/// `/api/v1/records/NAMESPACE/TABLE/ID`: who may change what.
@Suite("Records in the page's API") struct RecordAPITests {
  private static let json = ("content-type", "application/json")
  private static let merge = ("content-type", "application/merge-patch+json")
  private static let lines = ("content-type", "application/x-ndjson")

  /// As the owner.
  private static func ask(
    _ rig: PageRig, _ method: HTTPRequest.Method, _ path: String, _ query: [(name: String, value: String)] = [],
    _ headers: [(name: String, value: String)] = [], body: String = ""
  ) async -> (status: Int, text: String, tag: String?) {
    let request = PageRig.request("/api/v1/records/shop" + path, query, method: method, headers: headers, body: body)
    let answer = await rig.collector.answerReader(request, isOwner: true)
    return (
      answer.status, String(decoding: answer.body, as: UTF8.self), answer.headers.first { $0.name == "ETag" }?.value
    )
  }

  @Test("a record is made, read, changed and deleted, each with its tag")
  func lifeOfARecord() async throws {
    let rig = try PageRig()
    let made = await Self.ask(rig, .put, "/product/a/b", [], [Self.json, ("if-none-match", "*")], body: #"{"n": 1}"#)
    #expect(
      made.status == 201 && made.text.contains(#""id":"a/b","version":1"#) && made.text.contains(#""device":null"#))
    let again = await Self.ask(rig, .put, "/product/a/b", [], [Self.json, ("if-none-match", "*")], body: "{}")
    #expect(again.status == 412 && again.text.contains("read it again"))
    let read = await Self.ask(rig, .get, "/product/a/b")
    #expect(read.status == 200 && read.tag == made.tag && read.text == made.text)
    let tag = try #require(made.tag)
    #expect(await Self.ask(rig, .get, "/product/a/b", [], [("if-none-match", tag)]).status == 304)
    let patched = await Self.ask(
      rig, .patch, "/product/a/b", [], [Self.merge, ("if-match", "\"x\", \(tag)")], body: #"{"m":2}"#)
    #expect(patched.status == 200 && patched.text.contains(#""fields":{"n":1,"m":2}"#) && patched.tag != tag)
    #expect(await Self.ask(rig, .delete, "/product/a/b", [], [("if-match", tag)]).status == 412)
    #expect(await Self.ask(rig, .delete, "/product/a/b", [], [("if-match", "*")]).text == "{\"deleted\":true}\n")
    #expect(await Self.ask(rig, .delete, "/product/a/b").text == "{\"deleted\":false}\n")
    #expect(await Self.ask(rig, .get, "/product/a/b").status == 404)
    #expect(
      rig.rig.logged.contains {
        $0.contains("record: patch") && $0.contains("shop/product/a/b") && $0.contains("owner")
      })
    await rig.collector.close()
  }

  @Test("a record of a device says whether the device has it, and a deleted one whether it has the deletion")
  func fetched() async throws {
    let (rig, device) = (try PageRig(), [(name: "device", value: "d")])
    let put = await Self.ask(rig, .put, "/part/a", device, [Self.json], body: #"{"n":1}"#)
    #expect(put.status == 201 && put.text.hasSuffix(#""fields":{"n":1},"pending":true}\#n"#), "\(put.text)")
    func news(_ after: Int64) async throws {
      _ = try await rig.collector.store.news(of: RecordRig.part, in: RecordRig.shop, for: "d", after: after)
    }
    try await news(1)
    for path in ["/part/a", "/part"] {
      let read = await Self.ask(rig, .get, path, device)
      #expect(read.text.contains(#""pending":false,"fetchedTime":"#), "\(read.text)")
    }
    let same = await Self.ask(
      rig, .put, "/part/a", device, [Self.json, ("if-match", put.tag ?? "")], body: #"{"n":1}"#)
    #expect(same.status == 200 && same.text.contains(#""pending":false"#), "\(same.text)")
    _ = await Self.ask(rig, .delete, "/part/a", device)
    for (after, isPending) in [(1, true), (2, false)] as [(Int64, Bool)] {
      try await news(after)
      let gone = await Self.ask(rig, .get, "/part/a", device)
      #expect(gone.status == 404 && gone.text.contains("has not fetched that yet") == isPending, "\(gone.text)")
    }
  }

  @Test("many lines are changes, and the first wrong one says how many were carried out")
  func manyLines() async throws {
    let rig = try PageRig()
    let device = [(name: "device", value: "d")]
    let body = (0..<1500).map { #"{"id":"r\#($0)","fields":{"n":\#($0)}}"# }.joined(separator: "\n") + "\n"
    #expect(
      await Self.ask(rig, .post, "/setting", device, [Self.lines], body: body).text
        == "{\"stored\":1500,\"deleted\":0}\n")
    let mixed =
      #"{"id":"r1","delete":true}"# + "\n" + #"{"id":"r2","patch":{"n":null}}"# + "\n\n"
      + #"{"id":"r9999","delete":true}"#
    #expect(
      await Self.ask(rig, .post, "/setting", device, [Self.lines], body: mixed).text == "{\"stored\":1,\"deleted\":1}\n"
    )
    let bad = body + #"{"id":"x"}"#
    let refused = await Self.ask(rig, .post, "/other", [], [Self.lines], body: bad)
    #expect(refused.status == 400 && refused.text.contains("line 1501: it is no change"))
    #expect(refused.text.contains("the first 1000 lines are carried out"))
    let page = try JSONValue(parsing: await Self.ask(rig, .get, "/setting", device + [("limit", "1000")]).text)
    #expect(page["records"]?.array?.count == 1000 && page["next"]?.int == 1001)
    #expect(await Self.ask(rig, .get, "/setting").text.contains(#""device":"d""#), "those of all devices")
    await rig.collector.close()
  }

  @Test(
    "a faulty line is named by its number in the file, of which the body may be a part",
    arguments: [
      (#"{"id":"a","fields":{}}"# + "\n\n{}", 1, "line 3: it is no change", 0),
      (#"{"id":"a","fields":{}}"# + "\n\n" + #"{"id":"12","fields":{}}"#, 1, "line 3: 12: ids of digits", 0),
      ("\n" + #"{"id":"12","fields":{}}"# + "\n" + #"{"id":"a","fields":{}}"#, 4001, "line 4002: 12: ids", 4000),
      (String(repeating: #"{"id":"a","fields":{}}"# + "\n", count: 1000) + "x", 5001, "line 6001: it is", 6000),
    ])
  func faultyLine(body: String, firstLine: Int, words: String, taken: Int) async throws {
    let rig = try PageRig()
    let query = firstLine == 1 ? [] : [(name: "firstLine", value: "\(firstLine)")]
    let refused = await Self.ask(rig, .post, "/product", query, [Self.lines], body: body)
    #expect(400..<500 ~= refused.status && refused.text.contains(words), "\(refused.text)")
    #expect(refused.text.contains("the first \(taken) lines are carried out"), "\(refused.text)")
    #expect(await Self.ask(rig, .post, "/product", [("firstLine", "0")], [Self.lines]).status == 400)
    await rig.collector.close()
  }

  @Test(
    "a wrong request is refused",
    arguments: [
      (HTTPRequest.Method.put, "/product/a", [json], "[]", 400), (.put, "/product/a", [], "{}", 415),
      (.put, "/product/a", [merge], "{}", 415), (.put, "/pro.duct/a", [json], "{}", 400),
      (.put, "/product/ä", [json], "{}", 400), (.put, "/product/12", [json], "{}", 404),
      (.patch, "/product/a", [merge, ("if-match", "*")], "{}", 412),
      (.put, "/product/a", [json, ("if-match", "*"), ("if-none-match", "*")], "{}", 400),
      (.post, "/product", [json], "{}", 415), (.post, "/product/a", [json], "{}", 405),
      (.delete, "/product", [], "", 405),
    ] as [(HTTPRequest.Method, String, [(String, String)], String, Int)])
  func refuses(method: HTTPRequest.Method, path: String, headers: [(String, String)], body: String, status: Int)
    async throws
  {
    let rig = try PageRig()
    let answer = await Self.ask(rig, method, path, [], headers.map { (name: $0.0, value: $0.1) }, body: body)
    #expect(answer.status == status, "\(answer.text)")
    await rig.collector.close()
  }

  @Test("a change with an empty device is not one of the whole fleet", arguments: [HTTPRequest.Method.put, .delete])
  func emptyDevice(method: HTTPRequest.Method) async throws {
    let rig = try PageRig()
    let answer = await Self.ask(rig, method, "/product/a", [("device", "")], [Self.json], body: "{}")
    #expect(answer.status == 400 && answer.text.contains("device: is empty"), "\(answer.text)")
    await rig.collector.close()
  }

  @Test("only operators change records, and a session with its change token")
  func roles() async throws {
    let rig = try PageRig()
    func put(_ headers: [(name: String, value: String)]) async -> Int {
      await rig.answer(
        PageRig.request(
          "/api/v1/records/shop/product/a", method: .put, headers: [Self.json] + headers, body: "{}")
      ).status
    }
    #expect(await put([]) == 401)
    #expect(await put([("authorization", "Bearer sender-token-of-tests")]) == 401)
    #expect(await put([("authorization", "Bearer viewer-token-of-tests")]) == 403)
    #expect(await put([("authorization", "Bearer operator-token-of-tests")]) == 201)
    let session = try await rig.signIn("operator-token-of-tests")
    #expect(await put([("cookie", session.cookie)]) == 403)
    #expect(await put([("cookie", session.cookie), ("x-prism-change", session.change)]) == 200)
    let read = PageRig.request(
      "/api/v1/records/shop/product/a", headers: [("authorization", "Bearer viewer-token-of-tests")])
    #expect(await rig.answer(read).status == 200)
    await rig.collector.close()
  }
}
