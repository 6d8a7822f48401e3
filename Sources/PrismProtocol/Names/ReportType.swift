/// The kind of event of a report: 1 to 128 of `A-Z a-z 0-9 _ . : -`, the first a letter or digit
/// (docs/configuration.md).
public struct ReportType: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// The name as programs send it.
  public let text: String

  /// The type of crashes. They leave first and are evicted last. Their meta wins over the common information, because
  /// it is of an earlier run.
  public static let appCrash = ReportType(unchecked: "appCrash")

  /// nil when `text` is no type's name.
  public init?(_ text: String) {
    guard text.isName(bytesMax: 128, punctuation: "_.:-") else { return nil }
    self.text = text
  }

  private init(unchecked text: String) { self.text = text }

  public var description: String { text }
  public static func < (a: Self, b: Self) -> Bool { a.text < b.text }
}
