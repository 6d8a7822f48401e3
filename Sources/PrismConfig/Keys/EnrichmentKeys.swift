import PrismProtocol

extension RecordEnrichment {
  private typealias Key = ConfigurationKey<RecordEnrichment>

  /// One entry of `enrich`.
  static let keys = KeyTable(
    [
      Key(
        "type", .text("the name of a type", meaning: { ReportType($0) }, show: { .string($0.text) }), required: \.type,
        "the type of the reports"),
      Key("from", .member, required: \.from, "the member of the meta that finds the record"),
      Key("table", .recordTable, required: \.table, "the table of the record, with direction `down`"),
      Key(
        "by", .member, optional: \.by, default: "the id",
        "the field of the record that holds what `from` holds; it is in the table's `index`"),
      Key("into", .member, required: \.into, "the member of the meta that gets the fields"),
      Key(
        "fields", .list(of: .member, "a list of fields, at least one", atLeast: 1), required: \.fields,
        "the fields of the record"),
    ], defaults: RecordEnrichment(type: .appCrash, from: "", table: .command, into: "", fields: []))
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
    return .list(
      of: .object(
        RecordEnrichment.keys, "a map like {type: order, from: sku, table: product, into: PRODUCT, fields: [name]}"),
      "a list of at most \(most) rules", atMost: (most, "rules")
    ).checked(faults)
  }

  @Sendable private static func faults(
    _ rules: [RecordEnrichment], _ index: Int
  ) -> [(member: String, message: String)] {
    let (rule, most) = (rules[index], RecordEnrichment.fieldsMax)
    var faults: [(member: String, message: String)] = []
    if rule.fields.count > most {
      faults.append(("fields", "has \(rule.fields.count) fields, must be at most \(most)"))
    }
    if rules[..<index].contains(where: { $0.type == rule.type && $0.into == rule.into }) {
      faults.append(("into", "is \(rule.into), which another rule of the type \(rule.type) has already"))
    }
    if isReserved(rule.into) {
      faults.append(("into", "is \(rule.into), which prism writes itself; choose another name"))
    }
    return faults
  }

  private static func isReserved(_ key: String) -> Bool {
    key.hasPrefix("SYS_") || key.hasPrefix("$") || ["MONITOR_TYPE", "REPORT_ID", "CREATE_TIME", "IS_BIZ"].contains(key)
  }
}
