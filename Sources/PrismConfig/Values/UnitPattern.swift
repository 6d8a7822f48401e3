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

  /// In time of at most pattern times name: after a mismatch only the last `*` takes one character more.
  public func matches(_ unit: String) -> Bool {
    let (pattern, name) = (Array(text.utf8), Array(unit.utf8))
    var (at, position) = (0, 0)
    var star: (at: Int, position: Int)?
    while position < name.count {
      if at < pattern.count, pattern[at] == UInt8(ascii: "*") {
        star = (at, position)
        at += 1
      } else if at < pattern.count, pattern[at] == name[position] || pattern[at] == UInt8(ascii: "?") {
        (at, position) = (at + 1, position + 1)
      } else if let last = star {
        star = (last.at, last.position + 1)
        (at, position) = (last.at + 1, last.position + 1)
      } else {
        return false
      }
    }
    return pattern[at...].allSatisfy { $0 == UInt8(ascii: "*") }
  }
}
