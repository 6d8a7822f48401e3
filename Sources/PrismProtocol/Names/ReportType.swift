import PrismBase

/// The kind of event of a report: 1 to 128 of `A-Z a-z 0-9 _ . : -`, the first a letter or digit
/// (docs/configuration.md).
public struct ReportType: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// The name as programs send it.
  public let text: String

  /// The type of crashes. They leave first and are evicted last. Their meta wins over the common information, because
  /// it is of an earlier run.
  public static let appCrash = ReportType(unchecked: "appCrash")

  /// The type of what programs did in an hour (docs/sessions.md).
  public static let appHealth = ReportType(unchecked: "appHealth")

  /// The type of what became of kept reports in an hour (docs/recorder.md).
  public static let ringHealth = ReportType(unchecked: "ringHealth")

  /// Types that the daemon alone makes: what they say is judged by.
  public static let ofDaemon: Set = [appHealth.text, ringHealth.text]

  /// The type of events whose own one is no name, or one too many (docs/forward.md).
  public static let other = ReportType(unchecked: "other")

  /// nil when `text` is no type's name.
  public init?(_ text: String) {
    guard text.isName(bytesMax: 128, punctuation: "_.:-") else { return nil }
    self.text = text
  }

  /// An entry of a monitor list: a type's name, or a pattern of names with `*` for any text and `?` for any character.
  /// A pattern is equal to no report's type. nil when `text` is neither.
  public init?(entry text: String) {
    let isPattern = text.contains { $0 == "*" || $0 == "?" }
    guard isPattern ? text.isName(bytesMax: 128, punctuation: "_.:-*?", firstIsAlphanumeric: false) : Self(text) != nil
    else { return nil }
    self.text = text
  }

  /// The entry that means every type that no other one means.
  public static let any = ReportType(unchecked: "*")

  /// Whether it is a pattern, and not the type of a report.
  public var isPattern: Bool { text.utf8.contains { $0 == UInt8(ascii: "*") || $0 == UInt8(ascii: "?") } }

  /// Whether a pattern means `type`.
  public func matches(_ type: ReportType) -> Bool { Glob.matches(text, type.text) }

  /// The patterns of a monitor list in the order in which they count: that of the list, `*` last.
  public static func patterns(of entries: [ReportType]) -> [ReportType] {
    let patterns = entries.filter(\.isPattern)
    return patterns.filter { $0 != .any } + patterns.filter { $0 == .any }
  }

  private init(unchecked text: String) { self.text = text }

  public var description: String { text }
  public static func < (a: Self, b: Self) -> Bool { a.text < b.text }
}
