/// Some of a namespace's types: those that a choice among the entries of its monitor list means, patterns included. Pure.
public struct TypeSet: Sendable, Equatable, ExpressibleByArrayLiteral {
  private var included: Set<ReportType>
  /// Empty unless a pattern is chosen: then types by name that are not, though a pattern means them.
  private var excluded: Set<ReportType> = []
  /// In the order in which they count.
  private var patterns: [Pattern] = []

  private struct Pattern: Sendable, Equatable {
    var type: ReportType
    var isIncluded: Bool
  }

  public init(_ types: Set<ReportType>) { included = types }
  public init(arrayLiteral types: ReportType...) { self.init(Set(types)) }

  /// - Parameter entries: of a monitor list, in its order; `isIncluded` says whether their types are in the set.
  public init(_ entries: [(type: ReportType, isIncluded: Bool)]) {
    included = Set(entries.filter { $0.isIncluded && !$0.type.isPattern }.map(\.type))
    let all = ReportType.patterns(of: entries.map(\.type)).map { pattern in
      Pattern(type: pattern, isIncluded: entries.contains { $0.type == pattern && $0.isIncluded })
    }
    guard all.contains(where: \.isIncluded) else { return }
    patterns = all
    excluded = Set(entries.filter { !$0.isIncluded && !$0.type.isPattern }.map(\.type))
  }

  /// Whether no type is in it.
  public var isEmpty: Bool { included.isEmpty && patterns.isEmpty }
  /// The types, where no pattern is chosen; nil: more types may belong to it.
  public var names: Set<ReportType>? { patterns.isEmpty ? included : nil }

  public func contains(_ type: ReportType) -> Bool {
    if included.contains(type) { return true }
    if patterns.isEmpty || excluded.contains(type) { return false }
    return patterns.first { $0.type.matches(type) }?.isIncluded ?? false
  }
}
