import Foundation
import Glibc
import PrismBase
import PrismConfig
import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismCollector

@Suite("Who reads what came")
struct ReadingTests {
  private let rig = StoreRig()

  private func collector(readers: Bool, hosts: [String] = []) throws -> Collector {
    try "sender-token-of-tests\n".write(toFile: rig.path + "/senders", atomically: true, encoding: .utf8)
    try "reader-token-of-tests\n".write(toFile: rig.path + "/readers", atomically: true, encoding: .utf8)
    var options = CollectorOptions(state: rig.path, keys: ["main": CollectorTests.key])
    (options.listen, options.readerListen) = ("127.0.0.1:0", "127.0.0.1:0")
    options.tokenFile = rig.path + "/senders"
    if readers { options.readerTokenFile = rig.path + "/readers" }
    options.reader.hosts = hosts
    return try Collector(options, time: rig.time, log: rig.log)
  }

  private func get(_ path: String, token: String?, host: String? = "127.0.0.1:8081", isLocal: Bool = true)
    -> HTTPRequest
  {
    let headers = [("host", host), ("authorization", token.map { "Bearer " + $0 })].compactMap { name, value in
      value.map { (name: name, value: $0) }
    }
    return HTTPRequest(
      method: .get, path: path, headers: headers, peer: HTTPPeer(address: "127.0.0.1", isLocal: isLocal))
  }

  @Test("a sender's token reads nothing, anywhere; a reader's token reads, and sends nothing")
  func tokens() async throws {
    let collector = try collector(readers: true)
    for path in ["/reports", "/devices", "/metrics"] {
      #expect(await collector.answerReader(get(path, token: "reader-token-of-tests"), isOwner: false).status == 200)
      for token in ["sender-token-of-tests", nil, ""] {
        #expect(await collector.answerReader(get(path, token: token), isOwner: false).status == 401, "\(path)")
      }
    }
    for path in ["/reports", "/devices"] {
      for token in ["sender-token-of-tests", "reader-token-of-tests"] {
        #expect(await collector.answer(get(path, token: token)).status == 403)
      }
    }
    let packet = try CollectorTests.request(
      CollectorTests.context(.meta), metas: ["{}"], changing: ["authorization": "Bearer reader-token-of-tests"])
    #expect(await collector.answer(packet).status == 401)
  }

  @Test(
    "a web page that lets its own name point here reads nothing",
    arguments: [
      ("127.0.0.1:8081", true), ("[::1]:8081", true), ("localhost", true), ("LOCALHOST:1", true),
      ("prism.example", true),
      ("192.0.2.1", true), ("evil.example", false), ("127.0.0.1.evil.example:8081", false), ("", false), (nil, false),
      ("localhost.evil.example", false),
    ] as [(String?, Bool)])
  func hosts(host: String?, isAllowed: Bool) async throws {
    let collector = try collector(readers: true, hosts: ["prism.example"])
    let answer = await collector.answerReader(
      get("/reports", token: "reader-token-of-tests", host: host), isOwner: false)
    #expect(answer.status == (isAllowed ? 200 : 403))
  }

  @Test("metrics at the senders' address are for this machine, under its own names")
  func metrics() async throws {
    let collector = try collector(readers: false)
    #expect(await collector.answer(get("/metrics", token: nil)).status == 200)
    #expect(await collector.answer(get("/metrics", token: nil, host: "evil.example")).status == 403)
    #expect(await collector.answer(get("/metrics", token: nil, host: "192.0.2.1")).status == 403)
    #expect(await collector.answer(get("/metrics", token: nil, isLocal: false)).status == 403)
  }

  @Test(
    "without a reader's tokens only the owner's socket reads, which no other user can open", .timeLimit(.minutes(10)))
  func socket() async throws {
    let server = try collector(readers: false).serve()
    #expect(server.readerPort == nil)
    var facts = stat()
    #expect(stat(rig.path + "/reader.sock", &facts) == 0 && facts.st_mode & 0o777 == 0o600)
    let path = rig.path + "/reader.sock"
    let read = await Task.detached { Self.get("/reports", overSocket: path) }.value
    #expect(read.hasPrefix("HTTP/1.1 200 ") && read.hasSuffix("{\"reports\":[],\"next\":null}\n"), "\(read)")
    await server.stop()
  }

  /// The whole answer. Blocks.
  private static func get(_ path: String, overSocket socketPath: String) -> String {
    let descriptor = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(socketPath.utf8)) }
    let isConnected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
      }
    }
    let request = "GET \(path) HTTP/1.1\r\nHost: prism\r\nConnection: close\r\n\r\n"
    guard isConnected, write(descriptor, request, request.utf8.count) == request.utf8.count else { return "" }
    var (answer, chunk) = ([UInt8](), [UInt8](repeating: 0, count: 4096))
    while case let count = read(descriptor, &chunk, chunk.count), count > 0 { answer += chunk[..<count] }
    return String(decoding: answer, as: UTF8.self)
  }

  @Test("one report, its payload, and what is not there")
  func one() async throws {
    let collector = try collector(readers: false)
    _ = try await collector.store.take(StoreRig.packet([1], payload: [1, 2, 3]))
    let answer = { (path: String) in await collector.answerReader(get(path, token: nil), isOwner: true) }
    #expect(try JSONValue(parsing: await answer("/reports/1").body)["meta"]?["n"] == 1)
    #expect(await answer("/reports/1/payload").body == [1, 2, 3])
    for path in ["/reports/2", "/reports/2/payload", "/reports/x", "/reports/", "/reports/1/meta", "/nowhere"] {
      #expect(await answer(path).status == 404, "\(path)")
    }
  }

  @Test(
    "the plain paths go by the rules of the API: methods, parameters, headers, and no path with an empty part",
    arguments: [
      (.post, "/reports", "", 405), (.get, "/reports", "limit=0", 400), (.get, "/reports", "order=up", 400),
      (.get, "/reports", "after=-1", 400), (.get, "/reports", "since=1700000000", 400), (.get, "/records", "", 400),
      (.get, "/records", "namespace=shop&table=part&field=1 2", 400), (.get, "/devices", "failed=yes", 400),
      (.get, "/metrics", "", 200), (.get, "/healthz", "", 200), (.get, "/prism/import", "", 405),
      (.post, "/prism/import", "", 400), (.get, "//reports", "", 404), (.get, "/reports/", "", 404),
      (.get, "/api/v1/reports/", "", 404), (.get, "/api/v1/reports//payload", "", 404), (.post, "/", "", 405),
      (.get, "/api/v1/records/shop/part/", "", 400), (.delete, "/api/v1/records/shop/part/", "", 400),
    ] as [(HTTPRequest.Method, String, String, Int)])
  func plain(method: HTTPRequest.Method, path: String, query: String, status: Int) async throws {
    let collector = try collector(readers: true)
    var request = get(path, token: nil)
    request.method = method
    request.query = query.split(separator: "&").map { pair in
      let parts = pair.split(separator: "=", maxSplits: 1).map(String.init)
      return (parts[0], parts[1])
    }
    let answer = await collector.answerReader(request, isOwner: true)
    #expect(answer.status == status, "\(String(decoding: answer.body, as: UTF8.self))")
    #expect(answer.headers.contains { $0 == ("X-Content-Type-Options", "nosniff") })
    #expect(answer.headers.contains { $0.name == "Allow" } == (status == 405))
    let stranger = await collector.answerReader(request, isOwner: false).status
    #expect(stranger == ([404, 405].contains(status) ? status : 401))
  }

  @Test("only the owner of the state folder hands in packets of a file")
  func importing() async throws {
    let collector = try collector(readers: true)
    var request = get("/prism/import", token: "reader-token-of-tests")
    request.method = .post
    #expect(await collector.answerReader(request, isOwner: false).status == 403)
  }

  @Test("the plain list has the oldest report first, and that of the API the newest, unless the other is asked for")
  func order() async throws {
    let collector = try collector(readers: false)
    _ = try await collector.store.take(StoreRig.packet([1, 2]))
    for (path, order, ids) in [
      ("/reports", nil, [1, 2]), ("/reports", "newest", [2, 1]), ("/api/v1/reports", nil, [2, 1]),
      ("/api/v1/reports", "oldest", [1, 2]),
    ] as [(String, String?, [Int])] {
      var request = get(path, token: nil)
      request.query = order.map { [("order", $0)] } ?? []
      let page = try JSONValue(parsing: await collector.answerReader(request, isOwner: true).body)
      #expect(page["reports"]?.array?.map { $0["id"]?.int } == ids, "\(path) \(order ?? "")")
    }
  }

  @Test("refused packets: one line a minute and cause, with the count; only a proven sender is named")
  func refusals() async throws {
    let collector = try collector(readers: false)
    let forged = { (name: String, headers: [String: String?]) in
      try CollectorTests.request(
        CollectorTests.context(.meta, device: name), metas: ["{}", "[1]"],
        changing: ["authorization": "Bearer sender-token-of-tests"].merging(headers) { $1 })
    }
    for number in 0..<50 {
      _ = await collector.answer(try forged("forged-\(number)", ["prism-device-id": "chosen-\(number)"]))
      _ = await collector.answer(try forged("token-\(number)", ["authorization": "Bearer \(number)"]))
      _ = await collector.answer(try forged("proven-\(number)", [:]))
    }
    #expect(rig.logged.count == 3, "\(rig.logged)")
    rig.time.advance(by: .seconds(61))
    collector.refusals.flush()
    collector.refusals.flush()
    #expect(rig.logged.count == 6)
    for cause in ["decryptionFailed", "token", "metaSyntax"] {
      #expect(rig.logged.contains { $0.contains("cause=\(cause)") && $0.contains("count=49") }, "\(cause)")
    }
    let said = rig.logged.joined() + (await collector.metrics)
    #expect(!said.contains("chosen") && !said.contains("forged") && !said.contains("token-"))
    #expect(said.contains("last_device=proven-49"))
    #expect((await collector.metrics).contains(#"prism_collector_refusals_total{cause="decryptionFailed"} 50"#))
  }
}
