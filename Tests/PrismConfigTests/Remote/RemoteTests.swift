import PrismConfig
import PrismProtocol
import Testing

@Suite("Remote configuration over the files")
struct RemoteTests {
  private static let shop = NamespaceName("shop")!

  private func loaded(remote: String = "") throws -> LoadedConfiguration {
    try ConfigurationFolder([
      "prismd.yaml": "limits: {maxItem: 2000}\nremote: {url: \"https://h\"\(remote)}\n",
      "namespaces.d/shop.yaml": "maxItem: 50\nmonitorList: [{type: order}, {type: net, onlyWifi: false}]\n",
    ]).load()
  }

  private func entry(_ text: String) throws -> RemoteNamespace {
    try RemoteNamespace(parsing: JSONValue(parsing: text))
  }

  private func faults(_ texts: String..., remote: String = "") throws -> [String] {
    let loaded = try loaded(remote: remote)
    let entries = try texts.map { try entry($0) }
    do throws(ConfigurationFaults) {
      _ = try loaded.applying(remote: entries)
      return []
    } catch {
      return error.faults.map(\.description)
    }
  }

  @Test("is laid over what the file says, and over nothing that it does not name")
  func layers() throws {
    let loaded = try loaded()
    let under = try loaded.applying(remote: [try entry(#"{"name":"shop","maxItem":2000,"onlyWifi":true}"#)])
    let shop = try #require(under.snapshot.namespaces[Self.shop])
    #expect(shop.maxItem == 2000)
    #expect(shop.monitorList.map(\.onlyWifi) == [true, false])
    #expect(under.origins[Self.shop, "maxItem"] == .remote)
    guard case .file(_, line: 2) = under.origins[Self.shop, "monitorList"] else { throw Unexpected() }
    #expect(under.origins[Self.shop, "expirationDay"] == .default)
    #expect(under.snapshot.namespaces[.prism] == loaded.snapshot.namespaces[.prism])
  }

  @Test("brings namespaces and takes them back, and what the file says holds again")
  func comesAndGoes() throws {
    let loaded = try loaded()
    let under = try loaded.applying(remote: [
      try entry(#"{"name":"pay","monitorList":[{"type":"paid"}]}"#), try entry(#"{"name":"shop","maxItem":9}"#),
    ])
    #expect(under.snapshot.namespaces.keys.map(\.text).sorted() == ["pay", "prism", "shop"])
    let removed = try under.applying(remote: [try entry(#"{"name":"pay","delFlag":1}"#)])
    #expect(removed.snapshot == loaded.snapshot)
    #expect(removed.origins == loaded.origins)
  }

  @Test("is refused whole, with every fault, for one value that is out of bounds or not its to set")
  func refusals() throws {
    #expect(
      try faults(
        #"{"name":"shop","maxItem":2001,"isUpload":"no","tls":{"caFile":"/etc/passwd"},"keyId":"k","url":"https://x"}"#,
        #"{"name":"new","maxItm":1,"expirationDay":3,"periodicTimerSecond":31}"#)
        == [
          "remote: new.maxItm: is unknown; did you mean maxItem?",
          "remote: new.expirationDay: can shrink what is stored, and is granted with remote.publicKey only; remote.allow of prismd.yaml lists what is",
          "remote: new.periodicTimerSecond: is 31, must be 1...30; limits.periodicTimerSecond of prismd.yaml may raise the upper end to 3600",
          "remote: new.monitorList: is missing, must list at least one type; for example monitorList: [{type: order}]",
          "remote: shop.tls: can never be set remotely",
          "remote: shop.keyId: can never be set remotely",
          "remote: shop.url: is not granted; remote.allow of prismd.yaml lists what is",
          "remote: shop.maxItem: is 2001, must be 1...2000; limits.maxItem of prismd.yaml may raise the upper end to 10000",
          #"remote: shop.isUpload: is "no", must be true or false; write false without quotes"#,
        ])
  }

  @Test("may tighten the filters of a type and not loosen them")
  func filters() throws {
    let file = """
      monitorList:
        - type: order
          redact: [{field: user.email, action: hash}, {field: card, action: drop}]
          sample: 0.5
          perMinute: 60
          collapse: {by: [reason]}
        - {type: net}
      """
    let loaded = try ConfigurationFolder([
      "prismd.yaml": "remote: {url: \"https://h\"}\n", "namespaces.d/shop.yaml": file + "\n",
    ]).load()
    func filters(_ order: String, _ net: String = "") throws -> [TypeFilters] {
      let list = #"[{"type":"order"\#(order)},{"type":"net"\#(net)}]"#
      let under = try loaded.applying(remote: [try entry(#"{"name":"shop","monitorList":\#(list)}"#)])
      return try #require(under.snapshot.namespaces[Self.shop]).monitorList.map(\.filters)
    }
    let own = try #require(loaded.snapshot.namespaces[Self.shop]).monitorList[0].filters
    #expect(own.collapse == .init(by: [try #require(FieldPath("reason"))], seconds: 60))
    #expect(try filters("")[0] == own)
    let looser = #","redact":[{"field":"card","action":"hash"}],"sample":1,"perMinute":600,"collapse":{"by":["n"]}"#
    #expect(try filters(looser)[0] == own)
    let stricter = try filters(
      #","redact":[{"field":"user.email","action":"mask"},{"field":"n","action":"drop"}],"sample":0.1,"perMinute":6"#)[
        0]
    #expect(stricter.redact.map(\.field.text) == ["user.email", "card", "n"])
    #expect(stricter.redact.map(\.action) == [.mask, .drop, .drop])
    #expect(stricter.sample == 0.1 && stricter.perMinute == 6 && stricter.collapse == own.collapse)
    #expect(try filters("", #","perMinute":6"#)[1].perMinute == 6)
  }

  @Test(
    "a pattern takes no filter away from the types that it means",
    arguments: [
      ("order", #"{"type":"order.new"}"#, "order.new", false), ("order.*", #"{"type":"order.new"}"#, "order.new", true),
      ("order.new", #"{"type":"order.*"}"#, "order.new", true), ("order.*", #"{"type":"*"}"#, "order.new", true),
      ("order.new", #"{"type":"*"}"#, "click", false), ("*", #"{"type":"click"},{"type":"*"}"#, "click", true),
    ])
  func patternFilters(own: String, remote: String, type: String, isRedacted: Bool) throws {
    let file = #"monitorList: [{type: "\#(own)", redact: [{field: card, action: drop}]}]"#
    let loaded = try ConfigurationFolder([
      "prismd.yaml": "remote: {url: \"https://h\"}\n", "namespaces.d/shop.yaml": file + "\n",
    ]).load()
    let under = try loaded.applying(remote: [try entry(#"{"name":"shop","monitorList":[\#(remote)]}"#)])
    let list = try #require(under.snapshot.namespaces[Self.shop]).monitorList
    let reported = try #require(ReportType(type))
    let taken = try #require(list.entry(for: reported))
    #expect(taken.filters.redact.isEmpty == !isRedacted)
  }

  @Test("may set what the operator lists, and then nothing else")
  func allowList() throws {
    #expect(
      try faults(#"{"name":"shop","url":"https://x","maxItem":1}"#, remote: ", allow: [url]") == [
        "remote: shop.maxItem: is not granted; remote.allow of prismd.yaml lists what is",
        "remote: shop.keyId: is missing; a namespace with a url needs a key: `prismctl keys new` makes a file, and prismd.yaml names it under keys",
      ])
  }

  @Test("takes nothing from the environment")
  func environment() throws {
    #expect(
      try faults(#"{"name":"shop","maxItem":"${HOME}"}"#) == [
        #"remote: shop.maxItem: is "${HOME}", must be a whole number, 1...2000"#
      ])
  }

  @Test(
    "a text that is no entry",
    arguments: [
      "1", "{}", #"{"name":"a b"}"#, #"{"name":5}"#, #"{"name":"a","delFlag":2}"#, #"{"name":"a","delFlag":true}"#,
    ])
  func noEntry(text: String) throws {
    #expect(throws: ConfigurationFaults.self) { try RemoteNamespace(parsing: try JSONValue(parsing: text)) }
  }

  private struct Unexpected: Error {}
}
