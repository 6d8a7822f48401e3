import PrismConfig
import PrismProtocol
import Testing

@Suite("Shipped files", .serialized)
struct ShippedFilesTests {
  @Test("the JSON Schemas are those of the code")
  func schemas() throws {
    for (path, schema) in [
      ("config/prismd.schema.json", Schema.daemon), ("config/namespace.schema.json", Schema.namespace),
    ] {
      let text = schema.prettyText + "\n"
      #expect(try Repository.text(path, regeneratedAs: text) == text)
    }
  }

  @Test("the installed files hold every key with its unit, range and default")
  func samples() throws {
    for (path, text) in [
      ("config/prismd.yaml", Self.daemonSample), ("config/namespaces.d/prism.yaml", Self.namespaceSample),
    ] {
      #expect(try Repository.text(path, regeneratedAs: text) == text)
    }
  }

  @Test("docs/configuration.md has every key with its unit, range and default")
  func documentation() throws {
    let path = "docs/configuration.md"
    var text = try Repository.text(path)
    for (name, table) in [
      ("namespace", KeyReference.markdown(NamespaceKeys.table)), ("daemon", KeyReference.markdown(DaemonKeys.table)),
    ] {
      let (begin, end) = ("<!-- \(name) keys: held to the code by a test -->\n", "\n<!-- end -->")
      let start = try #require(text.firstRange(of: begin)).upperBound
      let stop = try #require(text[start...].firstRange(of: end)).lowerBound
      text.replaceSubrange(start..<stop, with: table)
    }
    #expect(try Repository.text(path, regeneratedAs: text) == text)
  }

  @Test("prismd.yaml(5) has every key with its unit, range and default")
  func manual() throws {
    let path = "docs/man/prismd.yaml.5"
    var text = try Repository.text(path)
    for (name, entries) in [
      ("namespace", KeyReference.manual(NamespaceKeys.table)), ("daemon", KeyReference.manual(DaemonKeys.table)),
    ] {
      let begin = ".\\\" \(name) keys: held to the code by a test\n"
      let start = try #require(text.firstRange(of: begin)).upperBound
      let stop = try #require(text[start...].firstRange(of: ".\\\" end\n")).lowerBound
      text.replaceSubrange(start..<stop, with: entries)
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
      "prismd.yaml": "keys: [{id: k1, file: k1.key}]", "k1.key": FilesTests.key,
      "namespaces.d/shop.yaml": Repository.text("config/namespaces.d/shop.yaml.example"),
    ])
    #expect(folder.faultLines().isEmpty)
  }

  @Test("every key of the installed files, with its # taken off, is sound too")
  func uncommented() throws {
    let uncomment = { (text: String) in
      text.split(separator: "\n").map { $0.replacing(/^( *)#(?=[a-zA-Z])/, with: { "\($0.1)" }) }.joined(
        separator: "\n")
    }
    let folder = try ConfigurationFolder([
      "prismd.yaml": uncomment(Self.daemonSample), "namespaces.d/prism.yaml": uncomment(Self.namespaceSample),
      "k1.key": FilesTests.key, "collector.token": "t", "remote.token": "t", "forward.key": "t",
      "ca.pem": FilesTests.certificate,
      "client.pem": FilesTests.certificate, "client.key": FilesTests.privateKey,
    ])
    #expect(folder.faultLines().isEmpty)
  }

  static let daemonSample = KeyReference.sample(
    DaemonKeys.table,
    head: """
      # yaml-language-server: $schema=prismd.schema.json
      #
      # prismd.yaml: the daemon's own file. A namespace is configured by namespaces.d/NAME.yaml beside it.
      # Every key is here, in a comment, with its default or an example: take the # off to set it.
      #   prismctl config check /etc/prism/prismd.yaml     finds every fault
      #   systemctl reload prismd                          takes it over, or nothing of it

      """,
    examples: [
      "ingest.group": "root", "control.group": "root", "control.readers": "root",
      "common": "{region: eu, rack: \"${RACK:-none}\"}",
      "keys": "[{id: k1, file: k1.key}]", "network.interfaces": "{\"wwan*\": metered, tun0: ignored}",
      "remote.url": "https://config.example.com/prism", "remote.allow": "[isUpload, isGather, maxItem, monitorList]",
      "remote.publicKey": "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=", "remote.tokenFile": "remote.token",
      "remote.caFile": "ca.pem", "remote.certFile": "client.pem", "remote.keyFile": "client.key",
      "metrics.listen": "127.0.0.1:9464", "otlp.listen": "127.0.0.1:4318", "otlp.namespace": "otel",
      "forward.socket": "/run/prism/forward.sock", "forward.listen": "127.0.0.1:24224", "forward.namespace": "logs",
      "forward.types": "{\"docker.*\": container, \"app?\": app}", "forward.sharedKeyFile": "forward.key",
      "crashSpool.folder": "/var/spool/prism",
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
      # Every key is here, in a comment, with its default or an example: take the # off to set it.

      """,
    examples: [
      "url": "https://collector.example.com", "appVersion": "1.0.0",
      "monitorList": "[{type: appCrash, isRealtime: true, isUploadPayload: true}, {type: net, onlyWifi: true}]",
      "keyId": "k1", "seal.publicKey": "3p7bfXt9wbTTW2HC7OQ1Nz+DQ8hbeGdNrfx+FG+IK08=",
      "authorization.tokenFile": "collector.token", "tls.caFile": "ca.pem", "tls.certFile": "client.pem",
      "tls.keyFile": "client.key", "allow.users": "[root, 1000]", "allow.groups": "[root]",
      "allow.units": "[\"shop-*.service\"]", "maxUserMByte": "64",
      "records": "[{table: part}, {table: suit, references: {part: part}}]",
    ])
}
