import PrismConfig
import PrismProtocol
import Testing

/// The schema and the code must say the same of a value, as far as a schema can tell.
@Suite("The JSON Schemas")
struct SchemaTests {
  /// One key's value, as JSON.
  struct Case: Sendable, CustomStringConvertible {
    let key: String, json: String
    var description: String { "\(key): \(json)" }
  }

  private static func cases(_ key: String, _ values: String...) -> [Case] { values.map { Case(key: key, json: $0) } }

  static let namespaceCases =
    cases("isUpload", "true", "false", "\"true\"", "\"no\"", "1", "null", "[]", "\"${T}\"")
    + cases("maxItem", "0", "1", "100", "10000", "10001", "1.5", "\"5\"", "true", "null", "\"${N}\"")
    + cases("maxBodyMByte", "0", "1", "64", "65") + cases("periodicTimerSecond", "0", "1", "3600", "3601")
    + cases("maxFlowMByte", "0", "1048576", "1048577") + cases("expirationDay", "0", "3650", "3651")
    + cases("maxStoreMByte", "0", "65536", "65537") + cases("meteredIntervalSecond", "-1", "0", "3600", "3601")
    + cases("onFull", "\"refuse\"", "\"Refuse\"", "1", "null") + cases("cipher", "\"aes-128-cbc\"", "\"aes\"")
    + cases("receipt", "\"optional\"", "false") + cases("appVersion", "\"1.0\"", "1.10", "true", "null", "{}")
    + cases("monitorList", "[]", "[{\"type\":\"a\"}]", "[{}]", "[\"a\"]", "{}", "[{\"type\":\"a\",\"x\":1}]")
    + cases("monitorList", "[{\"type\":\"a\",\"onlyWifi\":\"no\"}]", "[{\"type\":\"a\",\"onlyWifi\":true}]")
    + cases(
      "allow", "{}", "null", "{\"users\":[]}", "{\"users\":[0]}", "{\"users\":[\"root\"]}", "{\"user\":[0]}", "[]")
    + cases("tls", "{}", "{\"caFile\":1}", "{\"ca\":\"x\"}") + cases("unknown", "1") + cases("tls.caFile", "\"/x\"")

  static let daemonCases =
    cases(
      "ingest", "{\"mode\":\"0660\"}", "{\"mode\":660}", "{\"mode\":\"0999\"}", "{\"mode\":\"rw\"}", "{\"mode\":true}")
    + cases("ingest", "{\"maxConnections\":0}", "{\"maxConnections\":65536}", "{\"socket\":null}", "{\"port\":1}")
    + cases("limits", "{\"maxItem\":99}", "{\"maxItem\":100}", "{\"maxItem\":10000}", "{\"maxItem\":10001}")
    + cases("common", "{\"a\":\"b\",\"c\":5}", "{\"a\":true}", "{\"a\":null}", "{\"a\":{}}", "[]", "null")
    + cases("keys", "[]", "{}", "[{\"id\":\"k\"}]", "[{\"file\":\"k\"}]", "[1]", "null")
    + cases("network", "{\"default\":\"metered\"}", "{\"default\":\"ignored\"}", "{\"interfaces\":{\"*\":\"ignored\"}}")
    + cases("network", "{\"interfaces\":{\"*\":\"no\"}}", "{\"interfaces\":[]}")
    + cases("remote", "{\"allow\":[]}", "{\"allow\":[\"url\"]}", "{\"allow\":[\"keyId\"]}", "{\"allow\":\"url\"}")
    + cases("remote", "{\"intervalSecond\":9}", "{\"intervalSecond\":86400}", "{\"publicKey\":1}")
    + cases("metrics", "{\"listen\":9464}", "{\"listen\":true}")
    + cases("log", "{\"level\":\"warn\"}", "{\"level\":\"info\"}")
    + cases("durability", "\"normal\"", "\"no\"", "null", "1") + cases("maxItem", "1") + cases("log.level", "\"info\"")

  static let collectorCases =
    cases("retentionDay", "0", "1", "36500", "36501", "\"${N}\"", "null") + cases("memoryMByte", "15", "16", "4097")
    + cases("commitDeadlineMs", "999", "1000", "600001") + cases("onLag", "\"skip\"", "\"drop\"")
    + cases("reader", "{\"listen\":\"127.0.0.1:1\"}", "{\"listen\":true}", "{\"port\":1}", "{\"hosts\":\"a\"}")
    + cases("reader", "{\"hosts\":[\"a\"]}", "null") + cases("enroll", "{\"allowPlain\":true}", "{\"allowPlain\":1}")
    + cases(
      "outputs", "[]", "{}", "[{\"ndjson\":\"-\"}]", "[{\"ndjson\":\"/a\",\"rotateMByte\":0}]", "[{\"pigeon\":\"a\"}]")
    + cases(
      "outputs", "[{\"otlp\":\"http://a\",\"headers\":[\"a: b\"]}]", "[{\"otlp\":\"http://a\",\"headers\":\"a: b\"}]")
    + cases("keys", "[]", "{}", "[{\"id\":\"k\"}]", "[1]") + cases("lisn", "1") + cases("tls", "{\"ca\":\"x\"}")

  private static let environment = ["T": "true", "N": "5"]

  @Test("accept and refuse what the code does, of a namespace's file", arguments: namespaceCases)
  func namespace(value: Case) throws {
    let others = value.key == "monitorList" ? "" : #", "monitorList": [{"type": "a"}]"#
    let text = "{\"\(value.key)\": \(value.json)\(others)}"
    let limits =
      "{maxBodyMByte: 64, periodicTimerSecond: 3600, maxItem: 10000, maxFlowMByte: 1048576, expirationDay: 3650}"
    let folder = try ConfigurationFolder(["prismd.yaml": "limits: \(limits)\n", "namespaces.d/shop.json": text])
    try check(folder, text, Schema.namespace)
  }

  @Test("accept and refuse what the code does, of the daemon's file", arguments: daemonCases)
  func daemon(value: Case) throws {
    let text = "{\"\(value.key)\": \(value.json)}"
    try check(try ConfigurationFolder(["prismd.yaml": text]), text, Schema.daemon)
  }

  @Test("accept and refuse what the code does, of a collector's file", arguments: collectorCases)
  func collector(value: Case) throws {
    let keys = value.key == "keys" ? "" : #", "keys": [{"id": "a", "file": "a.key"}]"#
    let text = "{\"state\": \"s\", \"\(value.key)\": \(value.json)\(keys)}"
    let folder = try ConfigurationFolder(["c.yaml": text, "a.key": FilesTests.key])
    let isSound = try SchemaValidator.accepts(JSONValue(parsing: text), Schema.collector)
    let loader = CollectorLoader(
      path: "\(folder.path)/c.yaml", flags: [], environment: Self.environment, checks: .none)
    var faults: [ConfigurationFault] = []
    do throws(ConfigurationFaults) { _ = try loader.load() } catch { faults = error.faults }
    #expect(faults.isEmpty == isSound, "\(faults)")
  }

  private func check(_ folder: ConfigurationFolder, _ text: String, _ schema: JSONValue) throws {
    let faults = folder.faultLines(Self.environment)
    let isAccepted = try SchemaValidator.accepts(JSONValue(parsing: text), schema)
    #expect(faults.isEmpty == isAccepted, "\(faults)")
  }

  @Test("know every key, with a description")
  func complete() {
    for (names, schema) in [
      (NamespaceKeys.table.keys.map(\.name), Schema.namespace), (DaemonKeys.table.keys.map(\.name), Schema.daemon),
      (CollectorKeys.table.keys.map(\.name), Schema.collector),
    ] {
      for name in names {
        let property = name.split(separator: ".").reduce(schema) { $0["properties"]?[String($1)] ?? .null }
        #expect(property["description"]?.string?.isEmpty == false, "\(name)")
      }
    }
  }
}
