import PrismBase

/// Names of systemd units, where `*` is any text and `?` any character: `shop-*.service`.
public struct UnitPattern: Hashable, Comparable, Sendable {
  /// The longest pattern.
  public static let bytesMax = 256
  /// The pattern; `*` is any text, `?` any character.
  public let text: String

  /// nil: it has a character that no unit's name has, or too many.
  public init?(_ text: String) {
    let isSound = { (byte: UInt8) in Self.isNameByte(byte) || byte == UInt8(ascii: "*") || byte == UInt8(ascii: "?") }
    guard (1...Self.bytesMax).contains(text.utf8.count), text.utf8.allSatisfy(isSound) else { return nil }
    self.text = text
  }

  /// A byte that systemd allows in a unit's name (systemd.unit(5)).
  public static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: ":"), UInt8(ascii: "-"), UInt8(ascii: "_"),
      UInt8(ascii: "."), UInt8(ascii: "\\"), UInt8(ascii: "@"):
      true
    default: false
    }
  }

  public static func < (a: Self, b: Self) -> Bool { a.text < b.text }

  /// Whether the unit's name is one of the pattern's.
  public func matches(_ unit: String) -> Bool { Glob.matches(text, unit) }
}

/// An entry of `journal.match`: an entry of the journal that meets all of it is reported.
public struct JournalMatch: Sendable, Equatable {
  /// The name of a systemd unit; nil: of any.
  public var unit: String?
  /// `SYSLOG_IDENTIFIER`; nil: any.
  public var identifier: String?
  /// 0 (emergency) to 7 (debug); nil: any.
  public var priority: ClosedRange<Int>?
  public init() {}
}
