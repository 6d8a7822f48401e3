import Glibc
import PrismConfig
import PrismProtocol
import Testing

@Suite("Files and what they name")
struct FilesTests {
  static let key = "00112233445566778899aabbccddeeff"
  /// Blocks of an empty sequence.
  static let certificate = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"
  static let privateKey = "-----BEGIN PRIVATE KEY-----\nMAA=\n-----END PRIVATE KEY-----\n"
  static let shop = "monitorList: [{type: order}]\n"

  @Test("a missing file is a fault, a folder or a pipe in its place too, and they never block")
  func unreadable() throws {
    let folder = try ConfigurationFolder()
    #expect(folder.faultLines() == ["prismd.yaml:1: file: cannot be read: No such file or directory"])
    mkfifo("\(folder.path)/prismd.yaml", 0o600)
    #expect(folder.faultLines() == ["prismd.yaml:1: file: cannot be read: not a regular file"])
  }

  @Test("yaml, yml and json files are namespaces; hidden and other files are not looked at")
  func namespaceFiles() throws {
    let folder = try ConfigurationFolder([
      "prismd.yaml": "", "namespaces.d/a.yaml": Self.shop, "namespaces.d/b.yml": Self.shop,
      "namespaces.d/c.json": #"{"monitorList": [{"type": "order"}]}"#, "namespaces.d/d.yaml~": "broken: [",
      "namespaces.d/.e.yaml": "broken: [", "namespaces.d/README": "broken: [",
    ])
    #expect(symlink("nowhere", "\(folder.path)/namespaces.d/.#a.yaml") == 0)
    #expect(try folder.load().snapshot.namespaces.keys.map(\.text).sorted() == ["a", "b", "c", "prism"])
  }

  @Test("a file's stem must be a namespace's name, and stand once")
  func stems() throws {
    let folder = try ConfigurationFolder([
      "prismd.yaml": "", "namespaces.d/my shop.yaml": Self.shop, "namespaces.d/a.json": "{}",
      "namespaces.d/a.yaml": Self.shop,
    ])
    #expect(
      folder.faultLines() == [
        "namespaces.d/a.yaml:1: file: configures a, which namespaces.d/a.json does already; remove one",
        "namespaces.d/my shop.yaml:1: file: is named my shop, must be a namespace's name: 1 to 64 of A-Z a-z 0-9 _ -",
        "namespaces.d/a.json:1: monitorList: is missing, must list at least one type; for example monitorList: [{type: order}]",
      ])
  }

  @Test("an ending in capitals is a fault, not a file that is left unread")
  func capitals() throws {
    let folder = try ConfigurationFolder([
      "prismd.yaml": "", "namespaces.d/UP.YAML": Self.shop, "namespaces.d/b.Json": "{}", "namespaces.d/c.YAML.bak": "",
    ])
    #expect(
      folder.faultLines() == [
        "namespaces.d/UP.YAML:1: file: ends in .YAML, and is not read; rename it to end in .yaml",
        "namespaces.d/b.Json:1: file: ends in .Json, and is not read; rename it to end in .json",
      ])
  }

  @Test(
    "plain http leaves the machine only where prismd.yaml permits it",
    arguments: [
      ("http://127.0.0.1:8080", false, true, false), ("http://localhost", false, true, false),
      ("http://[::1]:80/x", false, true, false), ("https://collector.example.com", false, true, false),
      ("http://10.0.0.1", false, false, true), ("http://collector.example.com", true, true, true),
      ("http://localhost.example.com", false, false, true), ("HTTP://127.0.0.1.example.com", false, false, true),
    ])
  func plain(url: String, isAllowed: Bool, isSound: Bool, isPlain: Bool) throws {
    let folder = try ConfigurationFolder([
      "prismd.yaml": "keys: [{id: k1, file: k1.key}]\n" + (isAllowed ? "allowPlain: true\n" : ""), "k1.key": Self.key,
      "namespaces.d/shop.yaml": Self.shop + "url: \"\(url)\"\n",
    ])
    let lines = folder.faultLines()
    #expect(lines.isEmpty == isSound && lines.allSatisfy { $0.contains("allowPlain: true in prismd.yaml") }, "\(lines)")
    if isSound { #expect(try folder.load().snapshot.namespaces[NamespaceName("shop")!]?.isPlain == isPlain) }
  }

  @Test("prism.yaml changes the built-in namespace, and its list stays unless it is given")
  func builtIn() throws {
    let folder = try ConfigurationFolder(["prismd.yaml": "", "namespaces.d/prism.yaml": "maxItem: 7\nonlyWifi: true\n"])
    let prism = try #require(try folder.load().snapshot.namespaces[.prism])
    #expect(prism.maxItem == 7)
    #expect(prism.monitorList.map(\.type.text) == ["appCrash", "appLag", "appBoot", "net", "netError"])
    #expect(prism.monitorList.map(\.onlyWifi) == [true, true, true, true, true])
  }

  @Test("a relative key is looked up in the credentials' folder, then beside the daemon's file")
  func credentials() throws {
    let credentials = try ConfigurationFolder(["k1.key": String(repeating: "ab", count: 16)])
    let folder = try ConfigurationFolder([
      "prismd.yaml": "keys: [{id: k1, file: k1.key}, {id: k2, file: k2.key}]", "k1.key": Self.key, "k2.key": Self.key,
    ])
    let keys = try folder.load(["CREDENTIALS_DIRECTORY": credentials.path]).snapshot.daemon.keys
    #expect(keys.map(\.file) == ["\(credentials.path)/k1.key", "\(folder.path)/k2.key"])
    #expect(keys[0].secret == Secret([UInt8](repeating: 0xAB, count: 16)))
  }

  @Test("a key of a folder that systemd handed over is found by its path")
  func credentialsOfFolder() throws {
    let credentials = try ConfigurationFolder(["keys_k1.key": Self.key])
    let folder = try ConfigurationFolder([
      "prismd.yaml": "keys: [{id: k1, file: keys/k1.key}]", "namespaces.d/prism.yaml": "keyId: k1",
    ])
    let keys = try folder.load(["CREDENTIALS_DIRECTORY": credentials.path]).snapshot.daemon.keys
    #expect(keys.map(\.file) == ["\(credentials.path)/keys_k1.key"])
  }

  @Test("a namespace's relative file lies beside the daemon's file or beside its own")
  func relativeFiles() throws {
    let folder = try ConfigurationFolder([
      "prismd.yaml": "", "ca.pem": Self.certificate, "namespaces.d/token": "t0ken\n",
      "namespaces.d/shop.yaml": Self.shop + "tls: {caFile: ca.pem}\nauthorization: {tokenFile: token}\n",
    ])
    let shop = try #require(try folder.load().snapshot.namespaces.values.first { $0.name != .prism })
    #expect(shop.tls.caFile?.path == "\(folder.path)/ca.pem")
    #expect(shop.token == HeldFile(path: "\(folder.path)/namespaces.d/token", content: Secret(Array("t0ken".utf8))))
  }

  @Test("a ceiling that the operator raised holds for every namespace")
  func ceilings() throws {
    let folder = try ConfigurationFolder([
      "prismd.yaml": "limits: {maxItem: 5000}\n", "namespaces.d/shop.yaml": Self.shop + "maxItem: 5000\n",
    ])
    #expect(folder.faultLines().isEmpty)
    try folder.write("namespaces.d/shop.yaml", Self.shop + "maxItem: 5001\n")
    #expect(
      folder.faultLines() == [
        "namespaces.d/shop.yaml:2: maxItem: is 5001, must be 1...5000; limits.maxItem of prismd.yaml may raise the upper end to 10000"
      ])
  }

  @Test("a broken ceiling, key or daemon's file is shown once, not again by each namespace that leans on it")
  func noEchoes() throws {
    let folder = try ConfigurationFolder([
      "prismd.yaml": "limits: {maxItem: lots}\nkeys: [{id: k1, file: none.key}]\n",
      "namespaces.d/shop.yaml": Self.shop + "url: https://h\nkeyId: k1\nmaxItem: 5000\n",
    ])
    #expect(
      folder.faultLines() == [
        "prismd.yaml:1: limits.maxItem: is lots, must be a whole number, 1000...10000",
        "prismd.yaml:2: keys[0].file: names none.key (looked for in .): No such file or directory",
      ])
    try folder.write("prismd.yaml", "limits: [")
    #expect(folder.faultLines().count == 1)
  }

  @Test("a namespace with a url and no key to encrypt with")
  func noKey() throws {
    let folder = try ConfigurationFolder(["prismd.yaml": "", "namespaces.d/prism.yaml": "url: https://h\n"])
    #expect(
      folder.faultLines() == [
        "namespaces.d/prism.yaml:1: keyId: is missing; a namespace with a url needs a key: `prismctl keys new` makes a file, and prismd.yaml names it under keys"
      ])
  }
}
