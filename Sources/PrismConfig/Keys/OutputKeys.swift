import PrismProtocol

/// One entry of a collector's `outputs` as it was written.
package struct OutputDraft: Sendable {
  /// The compression of finished files.
  enum Compression: String, Sendable, CaseIterable { case zstd, none }

  /// One of the five kinds.
  var ndjson: String?, otlp: String?, kafka: String?, clickHouse: String?, postgreSQL: String?
  /// nil: the kind.
  var name: String?
  var compression = Compression.zstd
  var rotateBytes = 256 * 1_048_576
  var rotateAge = Duration.seconds(3600)
  var headers: [String] = []
  var encoding = CollectorConfiguration.Output.Encoding.protobuf
  var timeout = Duration.seconds(30)
  var topic = "prism"
  var propertiesFile: String?
  var database = "prism"
  var schema = "prism"
  var user: String?
  var passwordFile: HeldFile?

  private typealias Key = ConfigurationKey<OutputDraft>

  static let keys = KeyTable(
    [
      Key(
        "ndjson", .outputFolder, optional: \.ndjson, "a folder of files with a report a line; `-` is standard output"),
      Key("otlp", .collectorURL, optional: \.otlp, "the address of an OpenTelemetry backend"),
      Key(
        "kafka", .string("brokers without spaces, as k1.example:9092,k2.example:9092", isSound: \.isBrokers),
        optional: \.kafka, "brokers of Kafka"),
      Key(
        "name", .string("1 to 40 lower-case letters, digits and -", isSound: \.isOutputName), optional: \.name,
        default: "the kind", "the name under which the store notes what it took"),
      Key("compress", .choice, at: \.compression, "of `ndjson`: the compression of a file"),
      Key(
        "rotateMByte", .mebibytes(1...65_536), at: \.rotateBytes,
        "of `ndjson`: the size at which a file is finished"),
      Key(
        "rotateMinute", .minutes(1...10_080), at: \.rotateAge,
        "of `ndjson`: the age at which a file is finished"),
      Key(
        "headers", .list(of: .headerLine, "a list of lines NAME: VALUE"), at: \.headers, default: "none",
        "of `otlp`: headers of each request"),
      Key(
        "encoding", .choice, at: \.encoding,
        "of `otlp`: the form of a request; `json` for a backend that takes no protobuf"),
      Key(
        "timeoutSecond", .seconds(1...600), at: \.timeout,
        "of `otlp`, `kafka`, `clickhouse` and `postgresql`: the time after which an attempt failed"),
      Key(
        "topic", .string("1 to 249 letters, digits, dots, _ and -", isSound: \.isTopic), at: \.topic,
        "of `kafka`: the topic"),
      Key(
        "propertiesFile", .kafkaProperties, optional: \.propertiesFile,
        "of `kafka`: a file of lines `NAME=VALUE` for librdkafka, not readable by others"),
      Key("clickhouse", .collectorURL, optional: \.clickHouse, "the address of ClickHouse's HTTP port"),
      Key(
        "database", .string("1 to 64 letters, digits and _", isSound: \.isDatabase), at: \.database,
        "of `clickhouse`: the database of the tables"),
      Key(
        "postgresql", .databaseURI("postgresql://USER@HOST/DATABASE"), optional: \.postgreSQL,
        "a PostgreSQL database, as `postgresql://USER@HOST/DATABASE`"),
      Key(
        "schema", .string("1 to 63 letters, digits and _", isSound: \.isSchema), at: \.schema,
        "of `postgresql`: the schema of the tables"),
      Key(
        "user", .string("1 to 64 letters, digits, dots, _ and -", isSound: \.isUser), optional: \.user,
        default: "the server's own", "of `clickhouse`: the user"),
      Key(
        "passwordFile", .secretFile("the path of a file with a password in its first line, not readable by others"),
        optional: \.passwordFile,
        "of `clickhouse`: the user's password; of `postgresql`: lines of `host:port:database:user:password`"),
    ], defaults: OutputDraft())

  /// The kinds that have a key; the others have `name` alone.
  private static let kindsOfKeys = [
    "compress": ["ndjson"], "rotateMByte": ["ndjson"], "rotateMinute": ["ndjson"], "headers": ["otlp"],
    "encoding": ["otlp"], "timeoutSecond": ["otlp", "kafka", "clickhouse", "postgresql"], "topic": ["kafka"],
    "propertiesFile": ["kafka"], "database": ["clickhouse"], "user": ["clickhouse"],
    "passwordFile": ["clickhouse", "postgresql"], "schema": ["postgresql"],
  ]

  /// - Parameter given: the keys that were written.
  /// - Returns: nil after a fault was reported.
  fileprivate func settled(
    _ given: [String], line: Int, _ place: String, _ checker: inout Checker
  ) -> CollectorConfiguration.Output? {
    let kinds = [
      ("ndjson", ndjson), ("otlp", otlp), ("kafka", kafka), ("clickhouse", clickHouse), ("postgresql", postgreSQL),
    ]
    .filter { $0.1 != nil }.map(\.0)
    guard let kind = kinds.first, kinds.count == 1 else {
      checker.fault(
        line, place,
        "must be one of {ndjson: FOLDER}, {otlp: URL}, {kafka: BROKERS}, {clickhouse: URL} and {postgresql: URI}, with its own keys"
      )
      return nil
    }
    for key in given {
      guard let owners = Self.kindsOfKeys[key], !owners.contains(kind) else { continue }
      checker.fault(line, "\(place).\(key)", "is for \(owners.joined(separator: " and ")) only; remove it from \(kind)")
    }
    return CollectorConfiguration.Output(name: name ?? kind, target: target)
  }

  private var target: CollectorConfiguration.Output.Target {
    if let ndjson {
      return .ndjson(
        folder: ndjson == "-" ? nil : ndjson, compresses: compression == .zstd, bytesMax: rotateBytes, age: rotateAge)
    }
    if let otlp { return .otlp(url: otlp, headers: headers, encoding: encoding, timeout: timeout) }
    if let clickHouse {
      return .clickHouse(
        url: clickHouse, database: database, user: user, passwordFile: passwordFile?.path, timeout: timeout)
    }
    if let postgreSQL {
      return .postgreSQL(uri: postgreSQL, schema: schema, passwordFile: passwordFile?.path, timeout: timeout)
    }
    return .kafka(brokers: kafka ?? "", topic: topic, propertiesFile: propertiesFile, timeout: timeout)
  }
}

extension ValueForm where Value == CollectorConfiguration.Output {
  fileprivate static var output: Self {
    let entry = ValueForm<OutputDraft>.object(OutputDraft.keys, "a map like {ndjson: FOLDER}")
    return ValueForm(allowed: entry.allowed, schema: entry.schema) { node, key, checker in
      guard let draft = entry.read(node, key, &checker), case .mapping(let entries) = node.value else { return nil }
      return draft.settled(entries.map(\.key), line: node.line, key, &checker)
    } show: {
      ["name": .string($0.name)]
    }
  }
}

extension ValueForm where Value == [CollectorConfiguration.Output] {
  static var outputs: Self {
    .list(
      of: .output, "a list of outputs like {ndjson: FOLDER}",
      named: ({ $0.name }, "an earlier output has already; give each a name"))
  }
}

extension ValueForm where Value == String {
  /// A folder, or `-`.
  fileprivate static var outputFolder: Self {
    let path = ValueForm.path()
    return ValueForm(allowed: "a path, or -", schema: path.schema) { node, key, checker in
      if case .scalar(let scalar) = node.value, scalar.text == "-" { return "-" }
      return path.read(node, key, &checker)
    } show: {
      .string($0)
    }
  }

  /// A header may be a token: faults don't show it.
  fileprivate static var headerLine: Self {
    string("a line NAME: VALUE of at most 8192 bytes", isShown: { _ in false }, isSound: \.isHeaderLine)
  }

  /// The path of a file whose lines librdkafka takes.
  fileprivate static var kafkaProperties: Self {
    let allowed = "the path of a file of lines NAME=VALUE, not readable by others"
    return judged(allowed) { text, node, key, checker in
      let found = checker.search.read(text, bytesMax: 65_536)
      do throws(FileFault) { _ = try found.result.get() } catch {
        let places = text.hasPrefix("/") || !error.isMissing ? "" : " in \(checker.search.places)"
        checker.fault(node.line, key, "is \(node.shown), which cannot be read\(places): \(error.reason)")
        return nil
      }
      guard let fault = checker.collector?.propertiesFault(found.path) else { return found.path }
      checker.fault(node.line, key, "names a file with a fault: \(fault)")
      return nil
    }
  }
}

extension String {
  fileprivate var isBrokers: Bool { !isEmpty && utf8.allSatisfy { $0 > UInt8(ascii: " ") } }

  fileprivate var isHeaderLine: Bool {
    guard let colon = firstIndex(of: ":"), isPrintable(bytesMax: 8192) else { return false }
    return colon != startIndex && self[..<colon].utf8.allSatisfy { $0 > UInt8(ascii: " ") }
  }

  var isOutputName: Bool {
    isName(bytesMax: 40, punctuation: "-", firstIsAlphanumeric: false) && lowercased() == self
  }

  fileprivate var isDatabase: Bool { isName(bytesMax: 64, punctuation: "_", firstIsAlphanumeric: false) }
  fileprivate var isSchema: Bool { utf8.count <= 63 && isDatabase && first?.isNumber == false }
  fileprivate var isUser: Bool { isName(bytesMax: 64, punctuation: "-._", firstIsAlphanumeric: false) }
  fileprivate var isTopic: Bool { isName(bytesMax: 249, punctuation: "-._", firstIsAlphanumeric: false) }
}
