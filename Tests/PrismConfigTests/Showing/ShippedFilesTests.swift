import Foundation
import PrismConfig
import PrismProtocol
import Testing

@Suite("Shipped files", .serialized)
struct ShippedFilesTests {
  @Test("the JSON Schemas are those of the code")
  func schemas() throws {
    for (path, schema) in [
      ("config/prismd.schema.json", Schema.daemon), ("config/namespace.schema.json", Schema.namespace),
      ("config/collector.schema.json", Schema.collector),
    ] {
      let text = schema.prettyText + "\n"
      #expect(try Repository.text(path, regeneratedAs: text) == text)
    }
  }

  @Test("the installed files hold every key with its unit, range and default")
  func samples() throws {
    for (path, text) in [
      ("config/prismd.yaml", Self.daemonSample), ("config/namespaces.d/prism.yaml", Self.namespaceSample),
      ("config/collector.yaml", Self.collectorSample),
    ] {
      #expect(try Repository.text(path, regeneratedAs: text) == text)
    }
  }

  private typealias Table = (name: String, text: String)

  @Test("the pages have every key with its unit, range and default")
  func documentation() throws {
    try check(
      "docs/configuration.md",
      [
        ("namespace", KeyReference.markdown(NamespaceKeys.table)), ("daemon", KeyReference.markdown(DaemonKeys.table)),
      ])
    try check("docs/collector-reference.md", [("collector", KeyReference.markdown(CollectorKeys.table))])
  }

  private func check(_ path: String, _ tables: [Table]) throws {
    try check(path, tables, begin: { "<!-- \($0) keys: held to the code by a test -->\n" }, end: "\n<!-- end -->")
  }

  @Test("the man pages have every key with its unit, range and default")
  func manual() throws {
    let begin = { (name: String) in ".\\\" \(name) keys: held to the code by a test\n" }
    try check(
      "docs/man/prismd.yaml.5",
      [("namespace", KeyReference.manual(NamespaceKeys.table)), ("daemon", KeyReference.manual(DaemonKeys.table))],
      begin: begin, end: ".\\\" end\n")
    try check(
      "docs/man/prism-collector.8", [("collector", KeyReference.manual(CollectorKeys.table))], begin: begin,
      end: ".\\\" end\n")
  }

  private func check(_ path: String, _ tables: [Table], begin: (String) -> String, end: String) throws {
    var text = try Repository.text(path)
    for table in tables {
      let start = try #require(text.firstRange(of: begin(table.name))).upperBound
      let stop = try #require(text[start...].firstRange(of: end)).lowerBound
      text.replaceSubrange(start..<stop, with: table.text)
    }
    #expect(try Repository.text(path, regeneratedAs: text) == text)
  }

  @Test("the installed files load, and are all defaults")
  func installed() throws {
    let folder = try ConfigurationFolder([
      "prismd.yaml": Repository.text("config/prismd.yaml"),
      "namespaces.d/prism.yaml": Repository.text("config/namespaces.d/prism.yaml"),
    ])
    let defaults = try ConfigurationFolder(["prismd.yaml": ""])
    #expect(try folder.load().snapshot == defaults.load().snapshot)
  }

  @Test("the example of a business namespace loads as it is")
  func example() throws {
    let folder = try ConfigurationFolder([
      "prismd.yaml": "keys: [{id: main, file: main.key}]", "main.key": FilesTests.key,
      "namespaces.d/shop.yaml": Repository.text("config/namespaces.d/shop.yaml.example"),
    ])
    #expect(folder.faultLines().isEmpty)
  }

  @Test("every key of the installed files, with its # taken off, is sound too")
  func uncommented() throws {
    let folder = try ConfigurationFolder([
      "prismd.yaml": Self.uncommented(Self.daemonSample),
      "namespaces.d/prism.yaml": Self.uncommented(Self.namespaceSample),
      "main.key": FilesTests.key, "collector.token": "t", "remote.token": "t", "forward.key": "t",
      "ca.pem": FilesTests.certificate,
      "client.pem": FilesTests.certificate, "client.key": FilesTests.privateKey,
    ])
    #expect(folder.faultLines().isEmpty)
  }

  @Test("each key may also be written at the end of the installed files")
  func appended() throws {
    let folder = try ConfigurationFolder([
      "prismd.yaml": Self.daemonSample + Self.uncommented(Self.daemonSample),
      "namespaces.d/prism.yaml": Self.namespaceSample + Self.uncommented(Self.namespaceSample),
      "main.key": FilesTests.key, "collector.token": "t", "remote.token": "t", "forward.key": "t",
      "ca.pem": FilesTests.certificate, "client.pem": FilesTests.certificate, "client.key": FilesTests.privateKey,
    ])
    #expect(folder.faultLines().isEmpty)
  }

  @Test("each block of the pages for the daemon or the collector is sound at the end of the installed file")
  func blocks() throws {
    let pages = try FileManager.default.contentsOfDirectory(atPath: Repository.root.appending(path: "docs").path)
    var first: Set<String> = []
    for page in pages where page.hasSuffix(".md") {
      let parts = try Repository.text("docs/\(page)").components(separatedBy: "```yaml\n").dropFirst()
      for block in parts.map({ $0.components(separatedBy: "```")[0] }) {
        let keys = block.split(separator: "\n").filter { $0.first?.isLetter == true }.map { $0.prefix { $0 != ":" } }
        if keys.contains("keys") { continue }  // those of the daemon and of the collector differ
        if Self.holds(DaemonKeys.table, keys) {
          let folder = try ConfigurationFolder(["prismd.yaml": Self.daemonSample + block])
          #expect(folder.faultLines().isEmpty, "docs/\(page):\n\(block)")
        } else if Self.holds(CollectorKeys.table, keys) {
          let folder = try ConfigurationFolder(Self.collectorFiles(Self.collectorSample + block))
          #expect(throws: Never.self, "docs/\(page):\n\(block)") { try Self.load(folder) }
        } else {
          continue
        }
        first.insert(String(keys[0]))
      }
    }
    #expect(
      first.isSuperset(of: [
        "commands", "crashSpool", "forward", "host", "journal", "metrics", "notices", "otlp", "outputs", "reader",
        "remote",
      ]))
  }

  private static func holds<Target>(_ table: KeyTable<Target>, _ keys: [Substring]) -> Bool {
    !keys.isEmpty && Set(keys).isSubset(of: table.keys.map { $0.name.prefix { $0 != "." } })
  }

  private static func uncommented(_ text: String) -> String {
    text.split(separator: "\n").map { $0.replacing(/^( *)#(?=[a-zA-Z])/, with: { "\($0.1)" }) }.joined(separator: "\n")
  }

  @Test("the collector's file is sound as it is installed, and with every # taken off")
  func collector() throws {
    for text in [Self.collectorSample, Self.uncommented(Self.collectorSample)] {
      let loaded = try Self.load(ConfigurationFolder(Self.collectorFiles(text)))
      #expect(loaded.listen == "127.0.0.1:8480" && loaded.keys.map(\.id) == ["main"])
    }
  }

  /// The collector's file, and all that it may name.
  private static func collectorFiles(_ text: String) -> [String: String] {
    [
      "collector.yaml": text, "keys/main.key": FilesTests.key, "keys/pgpass": "", "keys/seal.pem": "",
      "keys/collector.tokens": "", "keys/reader.tokens": "", "keys/operator.tokens": "",
      "keys/collector.pem": FilesTests.certificate, "keys/collector.key": FilesTests.privateKey,
      "keys/senders.pem": FilesTests.certificate, "keys/signing.pem": "", "remote.d/README": "",
      "keys/clickhouse.password": "secret", "keys/proxy.jwks": "{}",
      "keys/postgresql.passwords": "*:*:*:prism:secret", "keys/kafka.properties": "", "keys/hook.secret": "secret",
    ]
  }

  private static func load(_ folder: ConfigurationFolder) throws -> CollectorConfiguration {
    try CollectorLoader(path: "\(folder.path)/collector.yaml", flags: [], environment: [:], checks: .none).load()
  }

  static let daemonSample = KeyReference.sample(
    DaemonKeys.table,
    head: """
      # yaml-language-server: $schema=prismd.schema.json
      #
      # prismd.yaml: the daemon's own file. A namespace is configured by namespaces.d/NAME.yaml beside it.
      # Every key is here, in a comment, with its default or an example. To set one, take the # off its line and off the
      # line of its group, or write it at the end of this file.
      #   prismctl config check /etc/prism/prismd.yaml     finds every fault
      #   systemctl reload prismd                          takes it over, or nothing of it

      """,
    examples: [
      "ingest.group": "root", "control.group": "root", "control.readers": "root",
      "common": "{region: eu, rack: \"${RACK:-none}\"}",
      "keys": "[{id: main, file: main.key}]", "network.interfaces": "{\"wwan*\": metered, tun0: ignored}",
      "remote.url": "https://config.example.com/prism", "remote.allow": "[isUpload, isGather, maxItem, monitorList]",
      "remote.publicKey": "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=", "remote.tokenFile": "remote.token",
      "remote.caFile": "ca.pem", "remote.certFile": "client.pem", "remote.keyFile": "client.key",
      "metrics.listen": "127.0.0.1:9464", "otlp.listen": "127.0.0.1:4318", "otlp.namespace": "otel",
      "forward.socket": "/run/prism/forward.sock", "forward.listen": "127.0.0.1:24224", "forward.namespace": "logs",
      "statsd.socket": "/run/prism/statsd.sock", "statsd.listen": "127.0.0.1:8125",
      "syslog.socket": "/run/prism/log.sock", "syslog.listen": "127.0.0.1:5514",
      "forward.types": "{\"docker.*\": container, \"app?\": app}", "forward.sharedKeyFile": "forward.key",
      "crashSpool.folder": "/var/spool/prism", "device.tags": "{region: eu}",
      "host.intervalSecond": "60", "host.namespace": "host",
      "journal.match": "[{unit: nginx.service}, {priority: 0..3}]", "journal.namespace": "logs",
      "journal.folder": "/var/log/journal/remote",
    ])

  static let namespaceSample = KeyReference.sample(
    NamespaceKeys.table,
    head: """
      # yaml-language-server: $schema=../namespace.schema.json
      #
      # The built-in namespace prism. It works without this file, but sends nothing before it has a url.
      # Every key is here, in a comment, with its default or an example. To set one, take the # off its line and off the
      # line of its group, or write it at the end of this file.

      """,
    examples: [
      "url": "https://collector.example.com", "appVersion": "1.0.0",
      "monitorList":
        "[{type: appCrash, isRealtime: true, isUploadPayload: true}, {type: net, onlyWifi: true}, {type: log, keep: ring}]",
      "keyId": "main", "seal.publicKey": "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=",
      "authorization.tokenFile": "collector.token", "tls.caFile": "ca.pem", "tls.certFile": "client.pem",
      "tls.keyFile": "client.key", "allow.users": "[root, 1000]", "allow.groups": "[root]",
      "allow.units": "[\"shop-*.service\"]", "maxUserMByte": "64",
      "records": "[{table: part}, {table: product, direction: down, scope: fleet, index: [ean]}]",
      "enrich": "[{type: net, from: ean, table: product, by: ean, into: PRODUCT, fields: [name]}]",
      "triggers": "[{name: crash, on: appCrash, types: [log], before: 200}]",
    ])

  static let collectorSample = KeyReference.sample(
    CollectorKeys.table,
    head: """
      # yaml-language-server: $schema=collector.schema.json
      #
      # The configuration of prism-collector.service.
      # Every key is here; those in a comment have their default or an example. To set one, take the # off its line and
      # off the line of its group, or write it at the end of this file.
      #   prism-collector check --config /etc/prism/collector.yaml     finds every fault
      #   systemctl enable --now prism-collector                       starts it
      #   systemctl restart prism-collector                            applies a change

      """,
    examples: [
      "listen": "127.0.0.1:8480", "state": "/var/lib/prism-collector", "store": "sqlite:/var/lib/prism-collector",
      "storePasswordFile": "keys/pgpass", "commitDeadlineMs": "10000", "keys": "[{id: main, file: keys/main.key}]",
      "sealKeys": "[keys/seal.pem]", "tokenFile": "keys/collector.tokens", "tls.certFile": "keys/collector.pem",
      "tls.keyFile": "keys/collector.key", "tls.clientCAFile": "keys/senders.pem", "reader.listen": "127.0.0.1:8081",
      "proxy.trusted": "[192.0.2.1]", "reader.hosts": "[prism.example]", "readerTokenFile": "keys/reader.tokens",
      "operatorTokenFile": "keys/operator.tokens", "retentionDay": "90",
      "assertion.header": "X-Pomerium-Jwt-Assertion", "assertion.keysFile": "keys/proxy.jwks",
      "assertion.audience": "prism.example", "assertion.issuer": "prism.example",
      "retention": "[{namespace: shop, type: log*, day: 7}]", "quotas": "[{namespace: \"lab-*\", maxRow: 1000000}]",
      "devicePacketPerMinute": "600", "packetPerMinute": "60000",
      "debuginfod": "https://debuginfod.debian.net",
      "outputs": "[{ndjson: /var/lib/prism-collector/out, rotateMByte: 256}]",
      "notices": #"[{name: ops, url: "https://ops.example/hook"}]"#, "remoteConfig": "remote.d",
      "signingKey": "keys/signing.pem",
    ], set: ["listen", "state", "keys"])
}
