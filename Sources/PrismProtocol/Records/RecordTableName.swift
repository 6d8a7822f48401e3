/// The name of a table of records: 1 to 64 of `A-Z a-z 0-9 _ -`, the first a letter or digit (docs/records.md).
public struct RecordTableName: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// The name as it is configured.
  public let text: String

  /// nil if `text` is no table's name.
  public init?(_ text: String) {
    guard text.isName(bytesMax: 64, punctuation: "_-") else { return nil }
    self.text = text
  }

  public var description: String { text }
  public static func < (a: Self, b: Self) -> Bool { a.text < b.text }
}
