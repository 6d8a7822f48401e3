import Foundation
import PrismConfig
import PrismHTTP
import PrismProtocol
import PrismSQL
import PrismTestSupport
import Testing

@testable import PrismCollector

/// A folder with a collector's file and what it names.
struct CollectorFile {
  static let key = String(repeating: "5a", count: 32) + "\n"

  let folder = TemporaryFolder()
  var flags: [CollectorLoader.Flag] = []
  var environment: [String: String] = [:]

  /// - Parameter files: by their path below the folder, of mode 0600; `main.key` is always there.
  init(_ text: String, _ files: [String: String] = [:]) throws {
    for (name, content) in files.merging(
      ["c.yaml": text, "main.key": Self.key], uniquingKeysWith: { first, _ in first })
    {
      let path = "\(folder.path)/\(name)"
      try FileManager.default.createDirectory(
        atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
      try content.write(toFile: path, atomically: true, encoding: .utf8)
      try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: path)
    }
  }

  func load() throws(ConfigurationFaults) -> CollectorConfiguration {
    try CollectorLoader(
      path: "\(folder.path)/c.yaml", flags: flags, environment: environment, checks: .libraries
    ).load()
  }

  /// As they are printed, without the folder in front.
  var faults: [String] {
    do throws(ConfigurationFaults) { _ = try load() } catch {
      return error.faults.map { $0.description.replacing(folder.path + "/", with: "") }
    }
    return []
  }
}

@Suite("A collector's file")
struct CollectorFileTests {
  private static let needed = "state: state\nkeys: [{id: main, file: main.key}]\n"

  /// Made for the test, so that it does not expire.
  private static func identity() throws -> (certificate: String, key: String) {
    let folder = TemporaryFolder()
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
    process.arguments = [
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=c", "-days", "2",
      "-keyout", "\(folder.path)/key.pem", "-out", "\(folder.path)/cert.pem",
    ]
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    return (
      try String(contentsOfFile: "\(folder.path)/cert.pem", encoding: .utf8),
      try String(contentsOfFile: "\(folder.path)/key.pem", encoding: .utf8)
    )
  }

  @Test("says everything that flags say, and what is opened of it is in the options")
  func read() throws {
    let pair = try Self.identity()
    let text = """
      listen: 0.0.0.0:8443
      state: st
      store: postgresql://prism@db1,db2/prism
      storePasswordFile: pgpass
      commitDeadlineMs: 1500
      tokenFile: t
      readerTokenFile: r
      operatorTokenFile: o
      reader: {listen: "0.0.0.0:9", hosts: [a.example, b.example]}
      retentionDay: 90
      memoryMByte: 16
      devicePacketPerMinute: 7
      deviceRowPerDay: 5
      deviceMBytePerDay: 2
      quotas: [{namespace: lab-*, maxRow: 9}]
      packetPerMinute: 70
      startDevicePerSecond: 3
      enroll: {allowPlain: true}
      outputLagMByte: 5
      retention: [{namespace: shop, type: log*, day: 7}, {day: 30}]
      onLag: refuse
      remoteConfig: remote.d
      keys: [{id: main, file: main.key}, {id: old, file: "${OLD}", derive: device, namespaces: [shop]}]
      tls: {certFile: cert.pem, keyFile: key.pem, clientCAFile: cert.pem}
      """
    var file = try CollectorFile(
      text,
      [
        "t": "0123456789abcdef\n", "r": "", "o": "", "pgpass": "h:p:d:u:w\n",
        "old.key": String(repeating: "6b", count: 16),
        "cert.pem": pair.certificate, "key.pem": pair.key, "remote.d/shop.yaml": "",
      ])
    file.environment = ["OLD": "old.key"]
    let folder = file.folder.path
    let options = try #require(CollectorOptions(try file.load()))
    #expect(options.listen == "0.0.0.0:8443" && options.state == "\(folder)/st")
    #expect(
      options.store == (try PostgreSQLTarget(uri: "postgresql://prism@db1,db2/prism", passwordFile: "\(folder)/pgpass"))
    )
    #expect(options.commitDeadline == .milliseconds(1500))
    #expect(options.tokenFile == "\(folder)/t" && options.readerTokenFile == "\(folder)/r")
    #expect(options.operatorTokenFile == "\(folder)/o" && options.readerListen == "0.0.0.0:9")
    #expect(options.reader.hosts == ["a.example", "b.example"] && !options.servesLocalReaders)
    #expect(options.retention.map(\.days) == [7, 30] && options.retention[1].namespace == "*")
    #expect(options.retention[0].means(namespace: "shop", type: "log.a"))
    #expect(options.retentionDays == 90 && options.memoryBytes == 16 << 20)
    var limits = CollectorConfiguration.Limits()
    (limits.devicePacketsPerMinute, limits.deviceBytesPerDay, limits.packetsPerMinute) = (7, 2 << 20, 70)
    (limits.startDevicesPerSecond, limits.deviceRowsPerDay) = (3, 5)
    limits.quotas = [.init(namespace: "lab-*", rowsMax: 9)]
    #expect(options.limits == limits && options.allowsPlainEnrollment)
    #expect(options.outputLagBytes == 5 << 20 && options.onLag == .refuse)
    #expect(options.keys.keys.sorted() == ["main", "old"] && options.keys["old"]?.count == 16)
    var rule = KeyRule()
    (rule.derivesForDevice, rule.namespaces) = (true, ["shop"])
    #expect(options.keyRules == ["old": rule])
    #expect(options.tls?.certificate == Array(pair.certificate.utf8) && options.tls?.clientAuthorities != nil)
    #expect(options.remote != nil)
  }

  @Test("names files relative to the credentials, then to itself")
  func files() throws {
    var file = try CollectorFile(
      "state: s\nkeys: [{id: main, file: keys/a.key}, {id: b, file: keys/b.key}]\n",
      ["credentials/keys_a.key": CollectorFile.key, "keys/a.key": "wrong", "keys/b.key": CollectorFile.key])
    file.environment = ["CREDENTIALS_DIRECTORY": "\(file.folder.path)/credentials"]
    let folder = file.folder.path
    #expect(try file.load().keys.map(\.file) == ["\(folder)/credentials/keys_a.key", "\(folder)/keys/b.key"])
  }

  @Test("flags count first; keys of both are known")
  func flags() throws {
    var file = try CollectorFile(
      Self.needed + "listen: 127.0.0.1:1\nstore: postgresql://a@b/c\n",
      ["t": "0123456789abcdef\n", "own.key": String(repeating: "6b", count: 16)])
    let folder = file.folder.path
    file.flags = [
      .init("--listen", key: "listen", .text("127.0.0.1:0")),
      .init("--token-file", key: "tokenFile", .text("\(folder)/t")),
      .init("--key", key: "keys", .key(id: "b", file: "\(folder)/main.key")),
      .init("--key", key: "keys", .key(id: "main", file: "\(folder)/own.key")),
      .init("--reader-listen", key: "reader.listen", .text("[::1]:9")),
      .init("--state", key: "state", .text("/elsewhere")),
    ]
    let read = try file.load()
    #expect(read.listen == "127.0.0.1:0" && read.tokenFile?.path == "\(folder)/t" && read.state == "/elsewhere")
    #expect(read.keys.map(\.id) == ["b", "main"] && read.keys[1].secret.count == 16)
    #expect(read.reader.listen == "[::1]:9" && read.store == "postgresql://a@b/c")
    file.flags = [
      .init("--listen", key: "listen", .text("here")), .init("--token-file", key: "tokenFile", .text("/nowhere")),
      .init("--key", key: "keys", .key(id: "c", file: "/nowhere.key")),
    ]
    #expect(
      file.faults == [
        "--listen: listen: is \"here\", must be ADDRESS:PORT, [ADDRESS]:PORT for IPv6",
        "--token-file: tokenFile: names a file that cannot be read: No such file or directory",
        "--key: keys[0].file: names /nowhere.key: No such file or directory",
      ])
  }

  @Test(
    "is refused with its file and line, and every fault of it",
    arguments: [
      ("lisen: a\n\(needed)", ["c.yaml:1: lisen: is unknown; did you mean listen?"]),
      ("listen: []\n\(needed)", ["c.yaml:1: listen: is a list, must be ADDRESS:PORT"]),
      ("state: /s\nkeys: main", ["c.yaml:2: keys: is main, must be a list of keys"]),
      ("listen: 127.0.0.1:1", ["c.yaml:1: state: is missing", "c.yaml:1: keys: is missing"]),
      (
        "state: s\nkeys: [{id: a}, {id: main, file: main.key}, {id: main, file: main.key}]\ntls: {certFile: /c}\nx: 1",
        [
          "c.yaml:2: keys[0].file: is missing", "c.yaml:2: keys[2].id: is main, which an earlier",
          "c.yaml:3: tls.certFile: is /c, which cannot be read",
          "c.yaml:3: tls.keyFile: is missing; tls.certFile needs it",
          "c.yaml:4: x: is unknown",
        ]
      ),
      (
        "\(needed)reader: {listen: \"0.0.0.0:81\"}",
        ["c.yaml:3: reader.listen: is 0.0.0.0:81, no loopback address, so it needs readerTokenFile"]
      ),
      (
        "\(needed)assertion: {issuer: a, claim: b, audience: c}",
        ["audience", "issuer", "claim"].map { "c.yaml:3: assertion.header: is missing; assertion.\($0) needs it" }
      ),
      (
        "\(needed)assertion: {header: X-A}",
        [
          "c.yaml:3: assertion.keysFile: is missing; assertion.header needs it",
          "c.yaml:3: assertion.audience: is missing; assertion.header needs it",
          "c.yaml:3: assertion.header: needs readerTokenFile or operatorTokenFile",
        ]
      ),
      ("\(needed)reader: {hosts: a}", ["c.yaml:3: reader.hosts: is a, must be a list"]),
      (
        "retentionDay: 0\nmemoryMByte: x\n\(needed)",
        ["c.yaml:1: retentionDay: is 0, must be 1...36500", "c.yaml:2: memoryMByte: is x, must be a whole"]
      ),
      (
        "\(needed)retention: [{type: a b, day: 40}, {namespace: -a, day: 1}]",
        [
          "c.yaml:3: retention[0].type: is a b, must be a type, or a pattern",
          "c.yaml:3: retention[1].namespace: is -a, must be a namespace, or a pattern",
        ]
      ),
      (
        "\(needed)retention: [{type: log*, day: 7}, {namespace: shop}, {type: log*, day: 9}]",
        ["c.yaml:3: retention[1].day: is missing"]
      ),
      (
        "\(needed)retention: [{type: log*, day: 7}, {type: log*, day: 9}]",
        ["c.yaml:3: retention[1].type: is that of rule 0 already"]
      ),
      (
        "\(needed)retentionDay: 30\nretention: [{namespace: shop-*, day: 31}]",
        ["c.yaml:4: retention: has 31 days, but retentionDay deletes all after 30"]
      ),
      ("\(needed)onLag: drop", ["c.yaml:3: onLag: is drop, must be hold, skip or refuse"]),
      ("\(needed)store: postgresql://u:hush@h/d", ["c.yaml:3: store: holds a password; put it into a file"]),
      ("keys: [{id: main, file: main.key}]\nstore: postgresql://u@h/d", ["c.yaml:1: state: is missing"]),
      ("\(needed)store: mysql://u:hush@h/d", ["c.yaml:3: store: must be sqlite:FOLDER or postgresql://"]),
      (
        "\(needed)signingKey: main.key",
        ["c.yaml:3: signingKey: is main.key, which holds no Ed25519", "c.yaml:3: remoteConfig: is missing"]
      ),
      ("\(needed)sealKeys: [main.key]", ["c.yaml:3: sealKeys[0]: is main.key, which holds no X25519"]),
      ("\(needed)remoteConfig: nowhere.d", ["c.yaml:3: remoteConfig: is nowhere.d, which is not there in"]),
      ("\(needed)tokenFile: open.tokens", ["c.yaml:3: tokenFile: names a file that others may read; run chmod 600"]),
      ("- a", ["c.yaml:1: file: is a list, must be a map"]),
      ("a: *b", ["c.yaml:1: YAML: ", "c.yaml:1: a: is unknown"]),
    ])
  func refused(text: String, starts: [String]) throws {
    let file = try CollectorFile(text, ["open.tokens": "hush"])
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o604], ofItemAtPath: "\(file.folder.path)/open.tokens")
    let faults = file.faults
    #expect(faults.count == starts.count && zip(faults, starts).allSatisfy { $0.hasPrefix($1) }, "\(faults)")
    #expect(!faults.contains { $0.contains("hush") })
  }

  @Test(
    "a token file holds one token of at least 16 bytes a line, and comments that begin in the first column; nothing else",
    arguments: [
      ("0123456789abcdef", nil), ("# a comment\n\n0123456789abcdef\r\n", nil), ("", nil),
      ("sha256:" + String(repeating: "aB", count: 32), nil),
      ("0123456789abcde", "has in line 1 a token of 15 bytes; at least 16 are needed"),
      (
        "0123456789abcdef\n0123456789abcdef # hush",
        "has in line 2 text that is not one token of visible ASCII characters"
      ),
      (" # hush", "has in line 1 text that is not one token"),
      ("\thush-hush-hush-hush", "has in line 1 text that is not one token"),
      ("hush-hush-hush-hüsh", "has in line 1 text that is not one token"),
      ("sha256:hush", "has in line 1 a hash that is not sha256:"),
    ] as [(String, String?)])
  func tokens(text: String, fault: String?) throws {
    for key in ["tokenFile", "readerTokenFile", "operatorTokenFile"] {
      let file = try CollectorFile("\(Self.needed)\(key): own.tokens", ["own.tokens": text])
      let starts = fault.map { ["c.yaml:3: \(key): names a file that \($0)"] } ?? []
      #expect(
        file.faults.count == starts.count && zip(file.faults, starts).allSatisfy { $0.hasPrefix($1) }, "\(file.faults)")
      #expect(!file.faults.contains { $0.contains("hush") })
    }
  }

  @Test("`keys` is a list of maps, each with every fault")
  func keys() throws {
    let file = try CollectorFile(
      "state: s\nkeys: [{id: a, file: main.key, derive: yes}, "
        + "{id: a, file: main.key, namespaces: [Shop!], speed: 1}, {id: b}]"
    )
    #expect(file.faults.count == 4, "\(file.faults)")
  }

  @Test("`notices` is a list of receivers, each with every fault; a secret is one line that others can't read")
  func notices() throws {
    let good = """
      \(Self.needed)notices:
        - {name: ops, url: "https://ops.example/hook", secretFile: keys/hook, on: [count], countOver: 5}
        - {name: chat, url: "http://chat:8080/x", form: slack}
      """
    let notices = try CollectorFile(good, ["keys/hook": "our-secret\n"]).load().notices
    #expect(notices.map(\.name) == ["ops", "chat"] && notices.map(\.form) == [.json, .slack])
    #expect(notices[0].secret?.content.bytes == Array("our-secret".utf8) && notices[1].secret == nil)
    #expect(notices[0].events == [.count] && notices[0].countOver == 5 && notices[0].countMinutes == 60)
    #expect(notices[1].events == [.newGroup, .regressedGroup])
    let bad = """
      \(Self.needed)notices:
        - {name: Ops, url: "ftp://ops", on: [], silentHour: 0, countMinute: 1441, form: mail, secretFile: keys/none}
        - {name: chat}
        - {name: chat, url: "http://a/"}
        - {name: chat, url: "http://b/", secretFile: keys/empty}
        - {name: chat, url: "http://c/"}
      """
    let file = try CollectorFile(bad, ["keys/empty": "\n"])
    #expect(file.faults.count == 10, "\(file.faults)")
  }

  @Test("`outputs` is a list of maps, each with every fault")
  func outputs() throws {
    let good = """
      \(Self.needed)outputs:
        - {ndjson: /out, compress: none, rotateMByte: 1, rotateMinute: 2}
        - {otlp: "http://otel:4318/", name: otel-1, headers: ["A: b"]}
        - {kafka: "k1:9092,k2:9092", topic: reports, propertiesFile: keys/kafka}
        - {ndjson: "-", name: out}
      """
    let sound = try CollectorFile(good, ["keys/kafka": "socket.timeout.ms=1000\n"])
    let outputs = try sound.load().outputs
    #expect(outputs.map(\.name) == ["ndjson", "otel-1", "kafka", "out"])
    #expect(
      outputs[0].target == .ndjson(folder: "/out", compresses: false, bytesMax: 1_048_576, age: .seconds(120)))
    guard case .ndjson(folder: nil, _, _, _) = outputs[3].target else {
      Issue.record("standard output is no folder")
      return
    }
    #expect(
      outputs[1].target
        == .otlp(url: "http://otel:4318", headers: ["A: b"], encoding: .protobuf, timeout: .seconds(30)))
    let properties = "\(sound.folder.path)/keys/kafka"
    #expect(
      outputs[2].target
        == .kafka(
          brokers: "k1:9092,k2:9092", topic: "reports", propertiesFile: properties, timeout: .seconds(30)))
    let bad = """
      \(Self.needed)outputs:
        - {ndjson: /out, compress: gzip, rotateMByte: 0, speed: 1}
        - {otlp: "otel:4318", name: "Otel 1", headers: [hush]}
        - {pigeon: here}
        - {ndjson: -, topic: a}
        - {kafka: "k:9092", timeoutSecond: 0, topic: a b}
        - {ndjson: /a, otlp: "http://b"}
      outputLagMByte: much
      """
    let faults = try CollectorFile(bad).faults
    #expect(faults.count == 12 && !faults.contains { $0.contains("hush") }, "\(faults.joined(separator: "\n"))")
  }
}
