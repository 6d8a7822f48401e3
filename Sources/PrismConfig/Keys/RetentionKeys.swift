import PrismBase
import PrismProtocol

private let nameGlob = ValueForm<String>.string(
  "a namespace, or a pattern of names with * and ?", isSound: NamespaceName.isPattern)

extension CollectorConfiguration.RetentionRule {
  private typealias Key = ConfigurationKey<CollectorConfiguration.RetentionRule>

  /// One entry of a collector's `retention`.
  static let keys = KeyTable(
    [
      Key("namespace", nameGlob, at: \.namespace, "of reports in these namespaces; `*` is any text, `?` any character"),
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

extension CollectorConfiguration.Quota {
  private typealias Key = ConfigurationKey<CollectorConfiguration.Quota>

  fileprivate static let keys = KeyTable(
    [
      Key(
        "namespace", nameGlob, required: \.namespace,
        "the namespaces, each with a quota of its own; of several entries the first that fits counts"),
      Key("maxRow", .integer(1...1_000_000_000_000, unit: "rows"), required: \.rowsMax, "the reports at rest"),
    ], defaults: CollectorConfiguration.Quota())
}

extension ValueForm where Value == [CollectorConfiguration.Quota] {
  static var quotas: Self {
    let most = CollectorConfiguration.RetentionRule.countMax
    let example = "{namespace: shop-*, maxRow: 1000000}"
    return .list(
      of: .object(CollectorConfiguration.Quota.keys, "a map like \(example)"),
      "a list of at most \(most) quotas like \(example)", atMost: (most, "quotas")
    ).checked { quotas, index in
      let earlier = quotas[..<index].firstIndex { Glob.matches($0.namespace, quotas[index].namespace) }
      return earlier.map {
        [("namespace", "is of quota \($0) already; the first one counts, so put this one before it")]
      } ?? []
    }
  }
}
