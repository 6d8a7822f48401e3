/// The id of a record in its table: 1 to 128 visible ASCII characters. The program that makes a record chooses the local
/// one, the server the other.
public struct RecordID: Hashable, Sendable, Comparable, CustomStringConvertible {
  /// Bytes at most.
  public static let bytesMax = 128

  /// The characters of the id.
  public let text: String

  /// nil if `text` is no record's id.
  public init?(_ text: String) {
    guard (1...Self.bytesMax).contains(text.utf8.count),
      text.utf8.allSatisfy({ UInt8(ascii: "!")...UInt8(ascii: "~") ~= $0 })
    else { return nil }
    self.text = text
  }

  public var description: String { text }
  public static func < (a: Self, b: Self) -> Bool { a.text < b.text }
}
