import PrismProtocol

/// A request about records, or to watch, as a client wrote it, taken apart; its table is not looked up yet. Pure.
struct RecordQuestion {
  /// The largest fields have fewer.
  private static let valuesMax = 8000

  let verb: RecordVerb
  private let object: [JSONValue.Member]
  /// Of its text.
  let bytes: Int

  /// - Throws: `bad_request`.
  init(_ verb: RecordVerb, _ text: Span<UInt8>) throws(Refusal) {
    (self.verb, bytes) = (verb, text.count)
    do { object = try JSONValue(parsing: text, valuesMax: Self.valuesMax).object ?? [] } catch {
      throw Refusal(.badRequest, "`\(verb.rawValue)`: \(error.reason)")
    }
    for member in object where !known.contains(member.key) {
      throw Refusal(
        .badRequest,
        "unknown field `\(verb.rawValue).\(member.key.prefix(64))`; known are \(known.joined(separator: ", "))")
    }
  }

  private var known: [String] {
    switch verb {
    case .put, .patch: ["namespace", "table", "id", "fields", "ifVersion"]
    case .delete: ["namespace", "table", "id", "ifVersion"]
    case .get: ["namespace", "table", "id"]
    case .list: ["namespace", "table", "after", "limit"]
    case .watch: isOfSwitches ? ["namespace", "configuration", "table"] : ["namespace", "table"]
    }
  }

  /// It watches the switches of its namespace, and no table.
  var isOfSwitches: Bool { verb == .watch && value("table") == nil }

  private func value(_ key: String) -> JSONValue? { object.first { $0.key == key }?.value }

  private func fault(_ key: String, _ rule: String) -> Refusal {
    Refusal(.badRequest, "`\(verb.rawValue).\(key)` \(rule)")
  }

  /// Its namespace; `prism` if it names no namespace. - Throws: `bad_request`.
  func namespace() throws(Refusal) -> String {
    guard let value = value("namespace") else { return NamespaceName.prism.text }
    guard let text = value.string else { throw fault("namespace", "must be a string") }
    return text
  }

  /// The namespace of a question for its switches. - Throws: `bad_request`.
  func switches() throws(Refusal) -> String {
    let name = try namespace()
    guard value("configuration")?.bool == true else {
      throw Refusal(.badRequest, "`watch` needs a `table`, or `\"configuration\":true`")
    }
    return name
  }

  /// - Throws: `bad_request`.
  func table() throws(Refusal) -> String {
    guard let text = value("table")?.string else { throw fault("table", "must be the name of a table") }
    return text
  }

  /// - Throws: `bad_request`.
  func action() throws(Refusal) -> RecordRequest.Action {
    switch verb {
    case .put: .put(try id("id"), try fields())
    case .patch: .patch(try id("id"), try fields())
    case .delete: .delete(try id("id"))
    case .get: .get(try id("id"))
    case .list: .list(after: value("after") == nil ? nil : try id("after"), limit: try limit())
    case .watch: .watch
    }
  }

  func request(_ namespace: NamespaceName, _ table: RecordTable) throws(Refusal) -> RecordRequest {
    RecordRequest(
      namespace: namespace, table: table, action: try action(), condition: try condition(), bytes: bytes)
  }

  private func id(_ key: String) throws(Refusal) -> RecordID {
    guard let id = value(key)?.string.flatMap({ RecordID($0) }) else {
      throw fault(key, "must be 1 to \(RecordID.bytesMax) visible ASCII characters")
    }
    return id
  }

  private func condition() throws(Refusal) -> VersionCondition? {
    guard let value = value("ifVersion") else { return nil }
    guard let condition = VersionCondition(value) else {
      throw fault("ifVersion", "must be a version, 0 for an absent record, or \"*\" for any version")
    }
    return condition
  }

  private func fields() throws(Refusal) -> JSONValue {
    guard let fields = value("fields"), fields.object != nil else { throw fault("fields", "must be an object") }
    return fields
  }

  private func limit() throws(Refusal) -> Int {
    guard let value = value("limit") else { return RecordRequest.listDefault }
    guard let limit = value.int, 1...RecordRequest.listMax ~= limit else {
      throw fault("limit", "must be 1 to \(RecordRequest.listMax)")
    }
    return limit
  }
}

extension Session {
  /// Judges a request about records as a report would be. - Throws: `bad_request`, `unknown_namespace`, `forbidden`,
  /// `gather_off`, `unknown_table`, `read_only`.
  mutating func request(_ question: RecordQuestion) throws(Refusal) -> RecordRequest {
    let namespace = try namespace(named: try question.namespace())
    let isReading = [.get, .list, .watch].contains(question.verb)
    guard namespace.isGather || isReading else {
      throw Refusal(.gatherOff, "isGather is off for \(namespace.name)")
    }
    let declared = try declared(try question.table(), namespace)
    guard declared.isWritable || isReading else {
      let why =
        declared.name == .tags
        ? "is written by `device.tags` of prismd.yaml alone"
        : declared.name == .command
          ? "holds the server's commands: the server alone changes its records"
          : "has direction down: the server alone changes its records"
      throw Refusal(.readOnly, "the table \(declared.name) \(why)")
    }
    return try question.request(namespace.name, declared)
  }

  /// Judges whether a table may still be read. - Throws: `unknown_namespace`, `forbidden`, `unknown_table`.
  mutating func checkTable(_ table: RecordTableName, of namespace: NamespaceName) throws(Refusal) {
    _ = try declared(table.text, try self.namespace(named: namespace.text))
  }

  private func declared(
    _ table: String, _ namespace: AdmissionRules.Namespace
  ) throws(Refusal) -> RecordTable {
    guard let declared = namespace.records[table] else {
      let known = namespace.records.keys.sorted().joined(separator: ", ")
      throw Refusal(
        .unknownTable,
        known.isEmpty
          ? "`records` of \(namespace.name) declares no table"
          : "the table is not in `records` of \(namespace.name); known are \(known)")
    }
    return declared
  }
}
