import PrismProtocol

extension TypeFilters.Redaction {
  private typealias Key = ConfigurationKey<TypeFilters.Redaction>

  /// An entry of `redact`.
  fileprivate static let keys = KeyTable(
    [
      Key("field", .fieldPath, required: \.field, "the path to the value"),
      Key(
        "action", .choice, required: \.action, "`drop` removes the member, `mask` makes it \"***\", `hash` a keyed hash"
      ),
    ], defaults: TypeFilters.Redaction(.any, .drop))
}

extension TypeFilters.Collapse {
  private typealias Key = ConfigurationKey<TypeFilters.Collapse>

  fileprivate static let keys = KeyTable(
    [
      Key(
        "by", .list(of: .fieldPath, "a list of fields, at least one", atLeast: 1), required: \.by,
        "the fields in which equal reports are equal"),
      Key("second", .integer(1...3600, unit: "seconds"), at: \.seconds, "how long the first one waits for others"),
    ], defaults: TypeFilters.Collapse(by: [], seconds: 60))
}

extension ValueForm where Value == TypeFilters.Collapse {
  static var collapse: Self { .object(TypeFilters.Collapse.keys, "a map like {by: [reason], second: 60}") }
}

extension ReportReduction {
  private typealias Key = ConfigurationKey<ReportReduction>

  fileprivate static let keys = KeyTable(
    [
      Key("second", .integer(1...3600, unit: "seconds"), at: \.seconds, "the window, from its first report on"),
      Key(
        "by", .list(of: .member, "a list of at most 8 members", atMost: (membersMax, "members")), at: \.by,
        "members whose values make a group"),
      Key(
        "fields",
        .dictionary(
          of: .choice, "a map of at most 8 members to histogram or sum", names: "a member of the meta",
          isName: { $0.isPrintable(bytesMax: 128) }), at: \.fields,
        "members with numbers: `sum` for count, sum, least and greatest, `histogram` for percentiles, too"),
    ], defaults: ReportReduction())
}

extension ValueForm where Value == ReportReduction {
  static var reduction: Self {
    .object(ReportReduction.keys, "a map like {second: 60, by: [route], fields: {ms: histogram}}")
  }
}

extension ValueForm where Value == FieldPath {
  static var fieldPath: Self {
    .text(
      "a path of keys joined with dots, * for any, at most 256 bytes and 16 keys", meaning: { FieldPath($0) },
      show: { .string($0.text) })
  }
}

extension ValueForm where Value == [TypeFilters.Redaction] {
  static var redactions: Self {
    .list(
      of: .object(TypeFilters.Redaction.keys, "a map like {field: user.email, action: hash}"),
      "a list of fields, at least one", atLeast: 1)
  }
}

extension ValueForm where Value == Double {
  /// Of reports: over 0 to 1.
  static var share: Self {
    let allowed = "a number over 0, at most 1, for example 0.1"
    let schema: JSONValue = ["type": "number", "exclusiveMinimum": 0, "maximum": 1]
    return ValueForm(allowed: allowed, schema: Schema.orEnvironment(schema)) { node, key, checker in
      guard let scalar = checker.scalar(node, key, mustBe: allowed) else { return nil }
      let isDecimal = scalar.text.utf8.allSatisfy {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: ".")
      }
      if isDecimal, let value = Double(scalar.text), value > 0, value <= 1 { return value }
      checker.refuse(node, key, mustBe: allowed)
      return nil
    } show: {
      .double($0)
    }
  }
}
