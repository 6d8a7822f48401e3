public import PrismProtocol

/// The rules of one type that hold before a report is stored (docs/filters.md). Without a rule the report is stored as it came.
public struct TypeFilters: Sendable, Equatable {
  /// The members of a meta that a rule is about, and their new values.
  public struct Redaction: Sendable, Equatable {
    /// The change of a value, the strictest first.
    public enum Action: String, Sendable, CaseIterable {
      /// The member is removed.
      case drop
      /// The value becomes `"***"`.
      case mask
      /// The value becomes a keyed hash of it, so that equal values stay equal on this device.
      case hash
    }

    /// The path to the values.
    public var field: FieldPath
    /// The change of the values.
    public var action: Action

    public init(_ field: FieldPath, _ action: Action) { (self.field, self.action) = (field, action) }
  }

  /// Equal reports become one row with their count.
  public struct Collapse: Sendable, Equatable {
    /// Reports are equal if these fields are, at least one.
    public var by: [FieldPath]
    /// From the first of them on, 1 to 3600 s.
    public var seconds: Int

    public init(by: [FieldPath], seconds: Int) { (self.by, self.seconds) = (by, seconds) }
  }

  /// Applied in this order.
  public var redact: [Redaction] = []
  /// The share of reports that is kept, over 0 to 1; nil: all.
  public var sample: Double?
  /// The field whose value decides whether a report is kept; nil: the report id.
  public var sampleBy: FieldPath?
  /// Reports of one user in a minute, 1 or more; nil: no limit.
  public var perMinute: Int?

  /// nil: each report is a row of its own.
  public var collapse: Collapse?
  /// nil: no windows.
  public var reduce: ReportReduction?

  /// No rule.
  public init() {}

  /// Whether a report is stored as it came.
  public var isEmpty: Bool { self == Self() }

  /// Both rules at once: of two limits the lower one, of two actions on the same field the stricter one, and this `collapse`
  /// and `reduce` before the other's.
  public func tightened(by other: Self) -> Self {
    var result = self
    for redaction in other.redact {
      guard let known = result.redact.firstIndex(where: { $0.field == redaction.field }) else {
        result.redact.append(redaction)
        continue
      }
      result.redact[known].action = min(result.redact[known].action, redaction.action)
    }
    result.perMinute = [perMinute, other.perMinute].compactMap(\.self).min()
    if let share = other.sample, share < sample ?? 2 { (result.sample, result.sampleBy) = (share, other.sampleBy) }
    if result.collapse == nil { result.collapse = other.collapse }
    if result.reduce == nil { result.reduce = other.reduce }
    return result
  }
}

extension TypeFilters.Redaction.Action: Comparable {
  public static func < (a: Self, b: Self) -> Bool {
    allCases.firstIndex(of: a)! < allCases.firstIndex(of: b)!
  }
}

/// A path to members of a meta: keys joined with dots, `*` for any member or element. `user.email` also means a member
/// whose key is `user.email`.
public struct FieldPath: Sendable, Hashable {
  /// The most bytes of a path, and the most keys.
  public static let bytesMax = 256, keysMax = 16

  /// As it was written.
  public let text: String
  /// From the outermost to the innermost.
  public let keys: [String]

  /// Any member of a meta.
  static let any = FieldPath("*")!

  /// nil unless the text is of 1 to `bytesMax` bytes, of at most `keysMax` keys, and no key is empty.
  public init?(_ text: String) {
    let keys = text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    guard text.isPrintable(bytesMax: Self.bytesMax), keys.count <= Self.keysMax, !keys.contains("") else { return nil }
    (self.text, self.keys) = (text, keys)
  }
}
