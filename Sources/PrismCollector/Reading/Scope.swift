import PrismBase
import PrismProtocol
import PrismSQL

/// The namespaces that somebody reads and changes. Every question to a store carries one, and it has no default: a new question
/// can't forget it (docs/page.md, "Teams").
struct Scope: Sendable, Hashable {
  /// Names with `*` and `?`; nil: all.
  let patterns: [String]?
  /// Whether it has the namespace in which the collector notes its readers.
  private let hasAudit: Bool

  /// Of the collector's own work, of its owner, and of operators without a list.
  static let everything = Scope(nil, hasAudit: true)
  /// The namespaces of devices: of viewers without a list.
  static let fleet = Scope(nil)

  init(_ patterns: [String]?, hasAudit: Bool = false) { (self.patterns, self.hasAudit) = (patterns, hasAudit) }

  var isLimited: Bool { patterns != nil }
  /// The same of devices alone.
  var ofDevices: Scope { Scope(patterns) }

  func has(_ namespace: String) -> Bool {
    if namespace == NamespaceName.audit.text { return hasAudit }
    return patterns?.contains { Glob.matches($0, namespace) } ?? true
  }

  /// Whether it may have one of the namespaces of a text of JSON. `has` tells for certain.
  func mayBe(in text: String) -> Bool {
    patterns?.contains { text.contains("\"" + $0.prefix { $0 != "*" && $0 != "?" }) } ?? true
  }

  /// The same as `has`, for a statement: nothing of it comes from a request.
  func condition(on column: String, _ dialect: SQLDialect) -> String {
    let others = hasAudit ? "" : " AND \(column) <> '\(NamespaceName.audit)'"
    guard let patterns else { return "TRUE" + others }
    let like = patterns.map { pattern in
      let text = pattern.replacing("'", with: "''")
      guard dialect == .postgreSQL else { return "\(column) GLOB '\(text.replacing("[", with: "[[]"))'" }
      let escaped = ["\\", "_", "%"].reduce(text) { $0.replacing($1, with: "\\\($1)") }
      return "\(column) LIKE '\(escaped.replacing("*", with: "%").replacing("?", with: "_"))'"
    }
    return "(\((like + ["FALSE"]).joined(separator: " OR ")))" + others
  }
}

extension NamespaceName {
  /// Where the collector notes who read, exported and changed what. No device sends to it.
  static let audit = NamespaceName("prism-audit") ?? .prism
}
