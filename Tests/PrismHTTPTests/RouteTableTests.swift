import PrismHTTP
import Testing

@Suite("The table of routes")
struct RouteTableTests {
  private static let table = RouteTable<Int>([
    .init(.get, "/", 0), .init(.get, "/things", 1), .init(.post, "/things", 2), .init(.post, "/things/all", 3),
    .init(.post, "/things/{id}", 4), .init(.delete, "/things/{id}", 5), .init(.get, "/things/{id}/parts", 6),
    .init(.get, "/files/{folder}/{+name}", 7),
  ])

  @Test(
    "the first row of a method and a path has the request, with the texts of its parts in braces",
    arguments: [
      (.get, "/", 0, []), (.get, "/things", 1, []), (.post, "/things", 2, []), (.post, "/things/all", 3, []),
      (.post, "/things/a", 4, ["a"]), (.delete, "/things/all", 5, ["all"]), (.get, "/things/é b/parts", 6, ["é b"]),
      (.get, "/files/f/n", 7, ["f", "n"]), (.get, "/files/f/a/b//c/", 7, ["f", "a/b//c/"]),
      (.get, "/files/f/", 7, ["f", ""]),
    ] as [(HTTPRequest.Method, String, Int, [String])])
  func found(method: HTTPRequest.Method, path: String, route: Int, parts: [String]) throws {
    let found = try Self.table.find(method, path).get()
    #expect(found.route == route && found.parts == parts)
  }

  @Test(
    "another path is 404 with what there is, and another method 405 with those that the path takes, each once",
    arguments: [
      (.get, "", nil), (.get, "things", nil), (.get, "/thing", nil), (.get, "/things/", nil), (.post, "/things/", nil),
      (.get, "//things", nil), (.get, "/things//parts", nil), (.get, "/things/a/parts/", nil), (.get, "/files/f", nil),
      (.get, "/files//n", nil), (.get, "/Things", nil), (.post, "/", "GET"),
      (.put, "/things", "GET, POST"), (.get, "/things/all", "POST, DELETE"), (.post, "/things/a/parts", "GET"),
      (nil, "/things/a", "POST, DELETE"), (nil, "/files/f/n", "GET"),
    ] as [(HTTPRequest.Method?, String, String?)])
  func missed(method: HTTPRequest.Method?, path: String, allow: String?) throws {
    guard case .failure(let miss) = Self.table.find(method, path) else {
      Issue.record("\(path) has a route")
      return
    }
    #expect(miss.status == (allow == nil ? 404 : 405) && miss.allow == allow)
    #expect(miss.message.contains(allow ?? "there are GET /, GET /things, POST /things, POST /things/all"))
    #expect(miss.response.status == miss.status)
    #expect(miss.response.headers.first { $0.name == "Allow" }?.value == allow)
  }
}
