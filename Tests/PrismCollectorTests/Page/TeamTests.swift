import Foundation
import PrismBase
import PrismConfig
import PrismHTTP
import PrismPacket
import PrismProtocol
import PrismSQL
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("Readers of some namespaces", .timeLimit(.minutes(5)))
struct TeamTests {
  private typealias Query = [(name: String, value: String)]

  /// A collector with tokens of two teams, and with what their devices sent.
  private final class Rig {
    static let alpha = "viewer-of-alpha-team", changer = "operator-of-alpha-team"
    let rig = StoreRig()
    let collector: Collector

    init(_ kind: StoreRig.Fleet = .sqlite, hasAudit: Bool = false) async throws {
      try "\(Self.alpha) namespaces=alpha,alph?2-*\nviewer-of-beta-team namespaces=beta*\nviewer-of-all-teams\n"
        .write(toFile: rig.path + "/viewers", atomically: true, encoding: .utf8)
      try "\(Self.changer) namespaces=alpha\noperator-of-everything\n"
        .write(toFile: rig.path + "/operators", atomically: true, encoding: .utf8)
      var options = CollectorOptions(state: rig.path, keys: ["main": CollectorTests.key])
      (options.readerTokenFile, options.operatorTokenFile) = (rig.path + "/viewers", rig.path + "/operators")
      options.reader.audit = hasAudit
      if kind == .postgresql {
        let database = try await PostgreSQLRig()
        options.store = try PostgreSQLTarget(uri: database.server.uri(database.database, user: "prism", others: []))
      }
      // The rows of a server have its time.
      let time: any TimeSource = kind == .postgresql ? SystemTime() : rig.time
      collector = try Collector(options, time: time, log: rig.log)
    }

    func ask(
      _ token: String?, _ path: String, _ query: Query = [], method: HTTPRequest.Method = .get, type: String? = nil,
      body: String = ""
    ) async -> HTTPResponse {
      let headers =
        (token.map { [("authorization", "Bearer \($0)")] } ?? []) + (type.map { [("content-type", $0)] } ?? [])
      let request = PageRig.request(path, query, method: method, headers: headers, body: body)
      return await collector.answerReader(request, isOwner: token == nil)
    }

    func json(_ token: String?, _ path: String, _ query: Query = []) async throws -> JSONValue {
      try JSONValue(parsing: await ask(token, "/api/v1" + path, query).wholeBody)
    }

    /// Sends what a team's devices have: reports, crashes, a payload; and makes records, tags and a command for them.
    func fill(_ team: String, first: Int) async throws {
      for (place, device) in ["\(team)-only", "both"].enumerated() {
        let time = rig.time.unixMilliseconds
        let head = #""APP_NAME":"\#(team)app","APP_VERSION":"1","CREATE_TIME":\#(time)"#
        try await send(
          device, team, first + 10 * place,
          [
            #"{"MONITOR_TYPE":"\#(team)-\#(team)type","REPORT_ID":"\#(team)\#(place)","word":"\#(team)word","n":7,\#(head)}"#,
            #"{"MONITOR_TYPE":"\#(team)-appCrash","REPORT_ID":"c\#(place)","reason":"\#(team)reason","stack":["\#(team)fn (\#(team)mod+0x1)"],\#(head)}"#,
            #"{"MONITOR_TYPE":"\#(team)-appCrash","REPORT_ID":"s\#(place)","reason":"shared","stack":["shared (lib+0x1)"],\#(head)}"#,
          ])
      }
      for (path, query, body) in [
        ("product", [], #"{"id":"p1","fields":{"\#(team)field":"\#(team)value"}}"#),
        ("tags", [(name: "device", value: "\(team)-only")], #"{"id":"operator","fields":{"\#(team)tag":"x"}}"#),
      ] {
        let answer = await ask(
          nil, "/api/v1/records/\(team)/\(path)", query, method: .post, type: "application/x-ndjson", body: body)
        #expect(answer.status == 200, "\(String(decoding: answer.body, as: UTF8.self))")
      }
    }

    private func send(_ device: String, _ namespace: String, _ number: Int, _ metas: [String]) async throws {
      var random = SeededRandom(seed: UInt64(number))
      let context = PacketContext(
        deviceID: device, namespace: NamespaceName(namespace)!,
        packetID: PacketID(unixMilliseconds: rig.time.unixMilliseconds, using: &random), kind: .meta)
      let request = try CollectorTests.request(context, metas: metas, sentTime: rig.time.unixMilliseconds)
      #expect(await collector.answer(request).status == 200)
    }

    /// The ids of a team's reports, and the fingerprints of its crashes.
    func places(of team: String) async throws -> (reports: [Int], crashes: [String]) {
      let reports = try await json(nil, "/reports", [("namespace", team)])["reports"]?.array ?? []
      let crashes = try await json(nil, "/crashes", [("namespace", team)])["groups"]?.array ?? []
      return (reports.compactMap { $0["id"]?.int }, crashes.compactMap { $0["fingerprint"]?.string })
    }
  }

  /// Every question of every route, about a team's data.
  private static func questions(_ team: String, _ places: (reports: [Int], crashes: [String])) -> [(
    path: String, query: Query, route: PageRoute
  )] {
    let (reports, crashes) = (places.reports.map(String.init), places.crashes)
    return PageRoutes.all.flatMap { route in
      let paths = [route.path].flatMap { path in
        path.contains("{id}") ? reports.map { path.replacing("{id}", with: $0) } : [path]
      }.flatMap { path in
        path.contains("{fingerprint}") ? crashes.map { path.replacing("{fingerprint}", with: $0) } : [path]
      }.map {
        $0.replacing("{namespace}", with: team).replacing("{table}", with: "product")
          .replacing("{+record}", with: "p1").replacing("{buildId}", with: "ab").replacing("{name}", with: "out")
      }
      let queries: [Query] = [
        [], [("namespace", team)], [("device", "\(team)-only")], [("device", "both")], [("id", "\(team)-only")],
        [("id", "both")], [("by", "type")], [("by", "namespace"), ("namespace", team)], [("key", "n")],
        [("key", "n"), ("by", "device")], [("namespace", team), ("table", "product")], [("after", "0")],
        [("where", "namespace ~ a")], [("search", team)], [("format", "csv")],
      ].filter { query in
        // A tail that has nothing to send waits: `tails` asks it.
        query.allSatisfy { route.parameters.contains($0.name) }
          && (route.path != "/tail" || query.first?.name == "after")
      }
      return paths.flatMap { path in queries.map { ("/api/v1" + path, $0, route) } }
    }
      + [
        ("/reports", [], PageRoutes.all[0]), ("/reports", [("namespace", team)], PageRoutes.all[0]),
        ("/records", [("device", "\(team)-only")], PageRoutes.all[0]), ("/devices", [], PageRoutes.all[0]),
        ("/metrics", [], PageRoutes.all[0]),
      ].map { ($0.0, $0.1, $0.2) }
      + reports.flatMap {
        [("/reports/\($0)", [], PageRoutes.all[0]), ("/reports/\($0)/payload", [], PageRoutes.all[0])]
      }
  }

  private static func type(of route: PageRoute) -> String {
    route.path.contains("{+record}") || route.method == .patch
      ? route.method == .patch ? "application/merge-patch+json" : "application/json"
      : route.path.hasPrefix("/records") ? "application/x-ndjson" : "application/json"
  }

  @Test(
    "no route shows or changes anything of another team: not its reports, names, counts, crashes, records or devices",
    arguments: StoreRig.Fleet.allCases)
  func walk(kind: StoreRig.Fleet) async throws {
    let rig = try await Rig(kind)
    try await rig.fill("alpha", first: 1)
    try await rig.fill("beta", first: 100)
    let places = try await rig.places(of: "beta")
    #expect(places.reports.count == 6 && places.crashes.count == 2)
    let secrets = [
      "betatype", "betaword", "betareason", "betamod", "betaapp", "betavalue", "betatag", "beta-only", "beta\"",
    ]
    let before = try await rig.json(nil, "/records", [("namespace", "beta"), ("table", "product")])
    for token in [Rig.alpha, Rig.changer] {
      for (path, query, route) in Self.questions("beta", places)
      where route.access != .everybody || !path.hasPrefix("/api") {
        let method = path.hasPrefix("/api") ? route.method : .get
        let bodies = [
          ("/state", #"{"state":"resolved"}"#), ("/jobs/", #"{"action":"pause"}"#),
          ("/jobs", #"{"namespace":"beta","where":"seen < 9d","command":"flush"}"#),
          ("/", #"{"id":"p1","fields":{"n":1}}"#),
        ]
        let change = bodies.first { path.contains($0.0) }?.1 ?? ""
        let body = method == .get ? "" : change
        let answer = await rig.ask(token, path, query, method: method, type: Self.type(of: route), body: body)
        let text = String(decoding: answer.wholeBody, as: UTF8.self)
        let given = path + query.map { "\"\($0.value)\"" }.joined()
        for secret in secrets where !given.contains(secret) {
          #expect(!text.contains(secret), "\(method) \(path) \(query) shows \(secret): \(text.prefix(300))")
        }
        let isOwnCrash = path.contains("/crashes/") || path.contains("/jobs/")
        #expect(method == .get || answer.status == 403 || isOwnCrash && answer.status == 404, "\(method) \(path)")
      }
    }
    #expect(try await rig.json(nil, "/records", [("namespace", "beta"), ("table", "product")]) == before)
    #expect(try await rig.json(nil, "/crashes")["groups"]?.array?.allSatisfy { $0["state"] == "open" } == true)
    await rig.collector.close()
  }

  @Test("a team's reader gets, byte for byte, what it would get if the other team had no devices")
  func difference() async throws {
    let (one, both) = (try await Rig(), try await Rig())
    for rig in [one, both] { try await rig.fill("alpha", first: 1) }
    try await both.fill("beta", first: 100)
    let places = try await one.places(of: "alpha")
    #expect(places.crashes.count == 2)
    var answered = 0
    for (path, query, route) in Self.questions("alpha", places) where route.method == .get || !path.hasPrefix("/api") {
      let answers = (await one.ask(Rig.alpha, path, query), await both.ask(Rig.alpha, path, query))
      let texts = (
        String(decoding: answers.0.wholeBody, as: UTF8.self), String(decoding: answers.1.wholeBody, as: UTF8.self)
      )
      #expect(answers.0.status == answers.1.status && texts.0 == texts.1, "\(path) \(query)")
      if answers.0.status == 200, texts.0.contains("alpha") { answered += 1 }
    }
    #expect(answered > 40, "most questions have an answer with data")
    for rig in [one, both] { await rig.collector.close() }
  }

  @Test("a tail without news shows nothing of other teams' reports, for any id, and goes on without a gap")
  func tails() async throws {
    let (one, both) = (try await Rig(), try await Rig())
    for rig in [one, both] { try await rig.fill("alpha", first: 1) }
    try await both.fill("beta", first: 100)
    func tail(_ rig: Rig, _ after: String?) async -> String {
      let (collector, time) = (rig.collector, rig.rig.time)
      let request = PageRig.request(
        "/api/v1/tail", after.map { [("after", $0)] } ?? [], headers: [("authorization", "Bearer \(Rig.alpha)")])
      return await withTaskGroup(of: String?.self) { group in
        group.addTask { String(decoding: await collector.answerReader(request, isOwner: false).body, as: UTF8.self) }
        group.addTask {
          while !Task.isCancelled {
            time.advance(by: .milliseconds(250))
            await Task.yield()
          }
          return nil
        }
        let text = await group.next() ?? nil
        group.cancelAll()
        return text ?? ""
      }
    }
    let newest = try #require(try await one.places(of: "alpha").reports.max())
    for after in [nil, "\(newest)", "\(newest + 6)", "9000000000000"] {
      let texts = (await tail(one, after), await tail(both, after))
      #expect(texts.0 == texts.1 && texts.0.contains("id: \(newest)\nevent: idle"), "\(after ?? "") \(texts)")
    }
    try await both.fill("alpha", first: 200)
    let news = await tail(both, "\(newest)")
    #expect(news.ranges(of: "event: report").count == 6 && !news.contains("event: cut"), "\(news)")
    for rig in [one, both] { await rig.collector.close() }
  }

  @Test("a crash that two teams have: each sees its own, and neither sees or changes what was said about both")
  func sharedCrash() async throws {
    let rig = try await Rig()
    try await rig.fill("alpha", first: 1)
    try await rig.fill("beta", first: 100)
    let all = try await rig.json(nil, "/crashes")["groups"]?.array ?? []
    let shared = try #require(all.first { $0["reason"] == "shared" }?["fingerprint"]?.string)
    let own = try #require(all.first { $0["reason"] == "alphareason" }?["fingerprint"]?.string)
    func change(_ token: String, _ fingerprint: String, _ body: String) async -> Int {
      let answer = await rig.ask(
        token, "/api/v1/crashes/\(fingerprint)/state", method: .post, type: "application/json", body: body)
      return answer.status
    }
    #expect(await change("operator-of-everything", shared, #"{"state":"resolved","comment":"of all"}"#) == 200)
    let seen = try await rig.json(Rig.alpha, "/crashes/\(shared)")
    #expect(
      seen["group"]?["total"] == 2 && seen["group"]?["state"] == "open" && seen["comments"]?.array?.isEmpty == true)
    #expect(await change(Rig.changer, shared, #"{"state":"open"}"#) == 403)
    #expect(await change(Rig.changer, own, #"{"state":"resolved"}"#) == 200)
    #expect(try await rig.json(Rig.alpha, "/crashes/\(own)")["group"]?["state"] == "resolved")
    await rig.collector.close()
  }

  @Test("a team tags its own devices only, and what it says of a shared one hides nothing that is said of the fleet")
  func tags() async throws {
    let rig = try await Rig()
    for (place, team) in ["alpha", "beta"].enumerated() { try await rig.fill(team, first: 100 * place + 1) }
    let all = "operator-of-everything"
    func tag(
      _ token: String, _ namespace: String, _ device: String, _ body: String, _ record: String = "operator"
    ) async -> Int {
      await rig.ask(
        token, "/api/v1/records/\(namespace)/prism.tags/\(record)", [("device", device)], method: .put,
        type: "application/json", body: body
      ).status
    }
    func devices(_ expression: String) async throws -> [String] {
      let found = try await rig.json(all, "/devices", [("where", expression)])
      return try #require(found["devices"]?.array).compactMap { $0["device"]?.string }
    }
    #expect(await tag(all, "prism", "both", #"{"ring":"stable"}"#) == 201)
    #expect(await tag(Rig.changer, "alpha", "beta-only", #"{"ring":"early"}"#) == 404)
    #expect(await tag(Rig.changer, "alpha", "both", #"{"ring":"early","site":"a"}"#) == 201)
    #expect(await tag(all, "alpha", "beta-only", #"{"ring":"early"}"#) == 201)
    #expect(await tag(all, "prism", "both", #"{"ring":"early"}"#, "enrollment") == 422)
    #expect(try await devices("tag.ring = early") == [])
    #expect(try await devices("tag.ring = stable") == ["both"])
    #expect(try await devices("tag.site = a") == ["both"])
  }

  @Test("a list of a token is read again with its file, also for a session; a wrong one changes nothing")
  func lists() async throws {
    let rig = try await Rig()
    try await rig.fill("alpha", first: 1)
    let sign = await rig.ask(
      Rig.alpha, "/api/v1/session", method: .post, type: "application/json", body: #"{"token":"\#(Rig.alpha)"}"#)
    let described = try JSONValue(parsing: sign.body)
    #expect(described["namespaces"] == ["alpha", "alph?2-*"])
    let cookie = String((sign.headers.first { $0.name == "Set-Cookie" }?.value ?? "").prefix { $0 != ";" })
    func types() async throws -> Int {
      let request = PageRig.request("/api/v1/types", headers: [("cookie", cookie)])
      let answer = await rig.collector.answerReader(request, isOwner: false)
      return try JSONValue(parsing: answer.body)["types"]?.array?.count ?? -1
    }
    #expect(try await types() == 2)
    for (list, count) in [("other", 0), ("alpha,", 0), ("al*", 2), ("al pha", 2), ("", 2), ("prism-audit,*", 2)] {
      try "\(Rig.alpha) namespaces=\(list)\n".write(
        toFile: rig.rig.path + "/viewers", atomically: true, encoding: .utf8)
      rig.rig.time.advance(by: .seconds(3))
      #expect(try await types() == count, "\(list)")
    }
    await rig.collector.close()
  }

  @Test("a sender's token has no list, and a list is names with * and ?")
  func form() throws {
    let token = "token-of-a-team-1"
    for (text, namespaces) in [
      (token, nil), (token + " namespaces=a,b-*", ["a", "b-*"]), (token + " namespaces=*", ["*"]),
    ] {
      let list = try TokenList(Array(text.utf8), isOfReaders: true)
      #expect(list.entries.map(\.secret) == [.token(Array(token.utf8))])
      #expect(list.entries.map(\.namespaces) == [namespaces])
    }
    for text in ["namespaces=", " namespaces=", " namespaces=a b", " namespaces=a,,b", " namespaces=a'b", " scope=a"] {
      #expect(throws: FileFault.self) { try TokenList(Array((token + " " + text).utf8), isOfReaders: true) }
    }
    #expect(throws: FileFault.self) { try TokenList(Array("\(token) namespaces=a".utf8), isOfReaders: false) }
  }

  @Test(
    "a condition of a statement holds for the same names as the rule", arguments: StoreRig.Fleet.allCases)
  func conditions(kind: StoreRig.Fleet) async throws {
    let rig = try await Rig(kind)
    let store = try #require(rig.collector.store as? any ReadStore)
    let names = ["shop", "Shop", "shop-a", "shop_a", "shopXa", "s", "prism-audit", "prism"]
    for scope in [
      Scope(["shop"]), Scope(["shop_a"]), Scope(["shop?a"]), Scope(["shop*"]), Scope(["*"]), Scope(["s'"]), Scope([]),
      .fleet, .everything, Scope(["prism-*", "s"]),
    ] {
      for name in names {
        let holds = try await store.readers.page.read { tables in
          let condition = scope.condition(on: "n", tables.statements.driver.dialect)
          return try tables.statements.run(
            "SELECT 1 FROM (SELECT CAST($1 AS text) AS n) t WHERE \(condition) AND n = $1", [name]) > 0
        }
        #expect(holds == scope.has(name), "\(scope) \(name)")
      }
    }
    await rig.collector.close()
  }

  @Test("who read, exported, changed and signed in is a report that operators without a list read, and no other reader")
  func audit() async throws {
    let rig = try await Rig(hasAudit: true)
    try await rig.fill("alpha", first: 1)
    for hour in 0..<3 {
      _ = await rig.ask(Rig.alpha, "/api/v1/reports", [("namespace", "alpha"), ("since", "\(hour)")])
    }
    _ = await rig.ask(Rig.alpha, "/api/v1/export", [("format", "csv")])
    _ = await rig.ask(Rig.alpha, "/api/v1/configuration")
    let values = ["customer-4711", "device-4711", "record-4711"]
    _ = await rig.ask(Rig.alpha, "/api/v1/reports", [("device", values[1]), ("meta", "customer.id != \(values[0])")])
    _ = await rig.ask(Rig.alpha, "/api/v1/device", [("id", values[1])])
    _ = await rig.ask(Rig.alpha, "/api/v1/devices", [("where", "device = \(values[1])"), ("search", values[1])])
    _ = await rig.ask(Rig.alpha, "/api/v1/records/alpha/product/\(values[2])", [("device", values[1])])
    _ = await rig.ask(
      Rig.changer, "/api/v1/records/alpha/product/p1", method: .put, type: "application/json", body: #"{"pin":"1234"}"#)
    _ = await rig.ask(
      nil, "/api/v1/session", method: .post, type: "application/json", body: #"{"token":"\#(Rig.alpha)"}"#)
    _ = await rig.ask("no-such-token-here", "/api/v1/reports")
    let audit = try #require(rig.collector.access.audit)
    await audit.write()
    let reports = try await rig.json("operator-of-everything", "/reports", [("namespace", "prism-audit")])["reports"]?
      .array
    let lines = (reports ?? []).compactMap { $0["meta"] }.map { meta in
      [
        meta["MONITOR_TYPE"]?.string, meta["role"]?.string, meta["path"]?.string, meta["query"]?.string,
        meta["status"]?.int.map { "\($0)" }, meta["count"]?.int.map { "\($0)" },
      ].map { $0 ?? "-" }.joined(separator: " ")
    }
    for line in [
      "prism-audit-read viewer /api/v1/reports namespace=alpha 200 3",
      "prism-audit-export viewer /api/v1/export format=csv 200 1",
      "prism-audit-read viewer /api/v1/configuration  403 1",
      "prism-audit-change operator /api/v1/records/alpha/product/\(ErasedValue.noted("p1"))  200 1",
      "prism-audit-read viewer /api/v1/reports device=\(ErasedValue.noted(values[1]))"
        + "&meta=customer.id != \(ErasedValue.noted(values[0])) 200 1",
      "prism-audit-read viewer /api/v1/records/alpha/product/\(ErasedValue.noted(values[2]))"
        + " device=\(ErasedValue.noted(values[1])) 404 1",
      "prism-audit-signIn viewer /api/v1/session  200 1",
    ] { #expect(lines.contains(line), "\(line) in \(lines)") }
    #expect(lines.count == 12, "two changes by the owner, and no line of a stranger: \(lines)")
    let whole = JSONValue.array(reports ?? []).text
    for secret in ["1234", Rig.alpha, Rig.changer, "no-such-token"] + values { #expect(!whole.contains(secret)) }
    for token in [Rig.alpha, Rig.changer, "viewer-of-all-teams"] {
      #expect(try await rig.json(token, "/reports", [("namespace", "prism-audit")])["reports"]?.array?.isEmpty == true)
      #expect(try await rig.json(token, "/types")["types"]?.text.contains("prism-audit") == false)
    }
    #expect(try await rig.json("operator-of-everything", "/devices")["total"] == 2, "the collector is no device")
    await rig.collector.close()
  }

  @Test("the audit log is bounded, counts what it left out, and no device writes to it")
  func auditBounds() async throws {
    let rig = try await Rig(hasAudit: true)
    for number in 0..<AuditLog.entriesMax + 7 {
      _ = await rig.ask(Rig.alpha, "/api/v1/types/\(number)x", [])  // no route: it is not noted
      _ = await rig.ask(Rig.alpha, "/api/v1/reports", [("namespace", "n\(number)")])
    }
    let padding = "a != " + String(repeating: "x", count: 600)
    _ = await rig.ask(Rig.alpha, "/api/v1/export", [("format", "csv"), ("meta", padding), ("namespace", "alpha")])
    await rig.collector.access.audit?.write()
    let exports = try await rig.json(
      nil, "/reports", [("namespace", "prism-audit"), ("meta", "path = /api/v1/export")])
    #expect(exports["reports"]?.array?.first?["meta"]?["query"]?.string?.hasSuffix("namespace=alpha") == true)
    let page = try await rig.json(nil, "/reports", [("namespace", "prism-audit"), ("limit", "1000")])["reports"]?.array
    #expect(page?.count == AuditLog.entriesMax && page?.first?["meta"]?["leftOut"] == 7)
    var random = SystemRandomNumberGenerator()
    let context = PacketContext(
      deviceID: "d", namespace: .audit, packetID: PacketID(unixMilliseconds: 1_700_000_000_000, using: &random),
      kind: .meta)
    #expect(await rig.collector.answer(try CollectorTests.request(context, metas: ["{}"])).status == 403)
    await rig.collector.close()
  }
}
