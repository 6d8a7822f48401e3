import PrismProtocol

/// One entry of `enrich` as it was written.
struct EnrichmentDraft: Sendable, Equatable {
  var type: String?
  var from: String?
  var table: RecordTableName?
  var by: String?
  var into: String?
  var fields: [String]?

  var enrichment: RecordEnrichment? {
    guard let type = type.flatMap({ ReportType($0) }), let from, let table, let into, let fields else { return nil }
    return RecordEnrichment(type: type, from: from, table: table, by: by, into: into, fields: fields)
  }
}

extension EnrichmentDraft {
  init(_ enrichment: RecordEnrichment) {
    self.init(
      type: enrichment.type.text, from: enrichment.from, table: enrichment.table, by: enrichment.by,
      into: enrichment.into, fields: enrichment.fields)
  }

  private typealias Key = ConfigurationKey<EnrichmentDraft>

  static let keys = KeyTable(
    [
      Key(
        "type", .string("the name of a type") { ReportType($0) != nil }, optional: \.type,
        isRequired: true, "the type of the reports"),
      Key("from", .member, optional: \.from, isRequired: true, "the member of the meta that finds the record"),
      Key("table", .recordTable, optional: \.table, isRequired: true, "the table of the record, with direction `down`"),
      Key(
        "by", .member, optional: \.by, default: "the id",
        "the field of the record that holds what `from` holds; it is in the table's `index`"),
      Key("into", .member, optional: \.into, isRequired: true, "the member of the meta that gets the fields"),
      Key(
        "fields", .list(of: .member, "a list of fields, at least one", atLeast: 1), optional: \.fields,
        isRequired: true, "the fields of the record"),
    ], defaults: EnrichmentDraft())
}

extension ValueForm where Value == String {
  /// A key of a JSON object that needs no escape.
  static var member: Self {
    .string("a key of 1 to 64 printable characters without quotes and backslashes") {
      $0.isPrintable(bytesMax: 64) && !$0.contains("\"") && !$0.contains("\\")
    }
  }
}

extension ValueForm where Value == [RecordEnrichment] {
  static var enrichments: Self {
    let most = RecordEnrichment.countMax
    let allowed = "a list of at most \(most) rules"
    let list = ValueForm<[EnrichmentDraft]>.list(
      of: .object(
        EnrichmentDraft.keys, "a map like {type: order, from: sku, table: product, into: PRODUCT, fields: [name]}"),
      allowed)
    return ValueForm(allowed: allowed, schema: list.schema) { node, key, checker in
      guard let drafts = list.read(node, key, &checker), case .sequence(let nodes) = node.value else { return nil }
      let rules = drafts.compactMap(\.enrichment)
      guard rules.count <= most else {
        checker.fault(node.line, key, "has \(rules.count) rules, must be \(allowed)")
        return nil
      }
      let faultsBefore = checker.faults.count
      for (index, rule) in rules.enumerated() {
        let (line, key) = (nodes[index].line, "\(key)[\(index)]")
        if rule.fields.count > RecordEnrichment.fieldsMax {
          checker.fault(
            line, "\(key).fields", "has \(rule.fields.count) fields, must be at most \(RecordEnrichment.fieldsMax)")
        }
        if rules[..<index].contains(where: { $0.type == rule.type && $0.into == rule.into }) {
          checker.fault(line, "\(key).into", "is \(rule.into), which another rule of the type \(rule.type) has already")
        }
        if isReserved(rule.into) {
          checker.fault(line, "\(key).into", "is \(rule.into), which prism writes itself; choose another name")
        }
      }
      return checker.faults.count == faultsBefore ? rules : nil
    } show: {
      list.show($0.map { EnrichmentDraft($0) })
    }
  }

  private static func isReserved(_ key: String) -> Bool {
    key.hasPrefix("SYS_") || key.hasPrefix("$") || ["MONITOR_TYPE", "REPORT_ID", "CREATE_TIME", "IS_BIZ"].contains(key)
  }
}
