import PrismProtocol

extension CollectorConfiguration.RetentionRule {
  private typealias Key = ConfigurationKey<CollectorConfiguration.RetentionRule>

  /// One entry of a collector's `retention`.
  static let keys = KeyTable(
    [
      Key(
        "namespace",
        .string("a namespace, or a pattern of names with * and ?", isSound: NamespaceName.isPattern), at: \.namespace,
        "of reports in these namespaces; `*` is any text, `?` any character"),
      Key(
        "type", .string("a type, or a pattern of types with * and ?") { ReportType(entry: $0) != nil }, at: \.type,
        "of reports of these types; `*` is any text, `?` any character"),
      Key("day", .integer(1...36_500, unit: "days"), required: \.days, "the age at which they are deleted"),
    ], defaults: CollectorConfiguration.RetentionRule())
}

extension ValueForm where Value == [CollectorConfiguration.RetentionRule] {
  static var retention: Self {
    let most = CollectorConfiguration.RetentionRule.countMax
    let example = "{namespace: shop, type: log*, day: 7}"
    return .list(
      of: .object(CollectorConfiguration.RetentionRule.keys, "a map like \(example)"),
      "a list of at most \(most) rules like \(example)", atMost: (most, "rules")
    ).checked { rules, index in
      let earlier = rules[..<index].firstIndex {
        $0.namespace == rules[index].namespace && $0.type == rules[index].type
      }
      return earlier.map { [("type", "is that of rule \($0) already, with the same namespaces; the first one counts")] }
        ?? []
    }
  }
}
