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

  @Test("may set what the operator lists, and then nothing else")
  func allowList() throws {
    #expect(
      try faults(#"{"name":"shop","url":"https://x","maxItem":1}"#, remote: ", allow: [url]") == [
        "remote: shop.maxItem: is not granted; remote.allow of prismd.yaml lists what is",
        "remote: shop.keyId: is missing; a namespace with a url needs a key, add one to keys in prismd.yaml",
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
