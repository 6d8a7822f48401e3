/// The name of a table of records: 1 to 64 of `A-Z a-z 0-9 _ -`, the first a letter or digit, or that of a built-in table,
/// `prism.command` and `prism.tags` (docs/records.md).
public struct RecordTableName: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// The name as it is configured.
  public let text: String

  /// The table of commands. No configuration declares it: it is there where the daemon's file allows commands.
  public static let command = RecordTableName(unchecked: "prism.command")

  /// The table of a device's tags. No configuration declares it: it is there where the daemon's file has `device.tags`.
  public static let tags = RecordTableName(unchecked: "prism.tags")

  /// nil if `text` is no table's name.
  public init?(_ text: String) {
    guard text.isName(bytesMax: 64, punctuation: "_-") || [Self.command, .tags].contains(where: { $0.text == text })
    else { return nil }
    self.text = text
  }

  private init(unchecked text: String) { self.text = text }

  /// Whether it is a built-in table.
  public var isBuiltIn: Bool { self == .command || self == .tags }

  public var description: String { text }
  public static func < (a: Self, b: Self) -> Bool { a.text < b.text }
}
