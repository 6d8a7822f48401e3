import PrismAdmission
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismLinux

@Suite("Requests about records over HTTP, as lines")
struct RecordRouteTests {
  private static func line(_ method: String, _ target: String, _ headers: String = "", body: String = "") throws
    -> String
  {
    let head = try HTTPHead(Array("\(method) \(target) HTTP/1.1\r\nHost: p\r\n\(headers)\r\n".utf8)[...])
    let (route, parts) = try HTTPRoutes().find(head, nil)
    guard case .record(let verb) = route else { return "" }
    return String(decoding: try RecordRoute(verb, head, parts).line(Array(body.utf8)), as: UTF8.self)
  }

  @Test(
    "each request is one line of the protocol",
    arguments: [
      ("GET", "/v1/records/part", "", "", #"{"list":{"table":"part"}}"#),
      (
        "GET", "/v1/records/part?namespace=shop&after=a%2Fb&limit=7&wait=3", "If-None-Match: \"5\"\r\n", "",
        #"{"list":{"table":"part","namespace":"shop","after":"a/b","limit":7}}"#
      ),
      ("GET", "/v1/records/part/a%22b", "", "", #"{"get":{"table":"part","id":"a\"b"}}"#),
      (
        "PUT", "/v1/records/part/a", "If-Match: \"3\"\r\n", "{\n\"n\":1.50}\n",
        #"{"put":{"table":"part","id":"a","ifVersion":3,"fields":{"n":1.50}}}"#
      ),
      (
        "PATCH", "/v1/records/part/a", "If-None-Match: *\r\n", #"{"n":null}"#,
        #"{"patch":{"table":"part","id":"a","ifVersion":0,"fields":{"n":null}}}"#
      ),
      (
        "DELETE", "/v1/records/part/a", "If-Match: *\r\n", "",
        #"{"delete":{"table":"part","id":"a","ifVersion":"*"}}"#
      ),
    ])
  func lines(method: String, target: String, headers: String, body: String, expected: String) throws {
    #expect(try Self.line(method, target, headers, body: body) == expected + "\n")
  }

  @Test("with any target and body, the request is refused or is one line with one member")
  func randomTargets() throws {
    var random = SeededRandom(seed: SeededRandom.announcedSeed("targets of records"))
    let pieces = [
      "part", "a", "%", "%2", "%22", "%0a", "%0A", "%5C", "/", "?", "&", "=", "namespace", "limit", "after", "wait",
      "1",
      "%ff", "%7B", "}", "\"", "\\", "..", "%00", "é",
    ]
    let bodies = ["", "{}", "[]", #"{"a":{}}"#, #"{}},"delete":{"#, "{\"a\":\"\n\"}", #"{"a":1}{"b":2}"#, "{\n}"]
    var taken = 0
    for _ in 0..<20_000 {
      let target =
        "/v1/records/"
        + (0..<Int.random(in: 0...8, using: &random)).map { _ in pieces.randomElement(using: &random)! }.joined()
      let method = ["GET", "PUT", "PATCH", "DELETE", "POST"].randomElement(using: &random)!
      guard let text = try? Self.line(method, target, body: bodies.randomElement(using: &random)!) else { continue }
      taken += 1
      #expect(text.utf8.count { $0 == UInt8(ascii: "\n") } == 1 && text.hasSuffix("\n"), "\(target)")
      let request = RequestScanner.scan(Array(text.utf8.dropLast()).span, reserved: ReservedKeys([])).request
      guard case .success(.record) = request else {
        Issue.record("\(method) \(target) became \(text)")
        continue
      }
    }
    #expect(taken > 100)
  }
}
