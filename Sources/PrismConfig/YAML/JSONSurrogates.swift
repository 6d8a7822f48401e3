import PrismBase
import PrismProtocol

/// JSON writes characters above U+FFFF as two escapes, which libyaml does not read: they become the character itself.
enum JSONSurrogates {
  static func replaced(in text: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var rest = text[...]
    while let backslash = rest.firstIndex(of: UInt8(ascii: "\\")) {
      result += rest[..<backslash]
      rest = rest[backslash...]
      if let character = pair(rest.prefix(12)) {
        result += String(Character(character)).utf8
        rest = rest.dropFirst(12)
      } else {
        // With the character after it, so that an escaped backslash begins no escape.
        result += rest.prefix(2)
        rest = rest.dropFirst(2)
      }
    }
    return result + rest
  }

  /// `\uD83D\uDE00`
  private static func pair(_ text: ArraySlice<UInt8>) -> Unicode.Scalar? {
    guard let high = unit(text.prefix(6)), let low = unit(text.dropFirst(6)),
      (0xD800..<0xDC00).contains(high), (0xDC00..<0xE000).contains(low)
    else { return nil }
    return Unicode.Scalar(0x10000 + (high - 0xD800) << 10 + (low - 0xDC00))
  }

  private static func unit(_ text: ArraySlice<UInt8>) -> UInt32? {
    guard text.count == 6, text.starts(with: [UInt8(ascii: "\\"), UInt8(ascii: "u")]),
      let pair = Hex.decode(text.dropFirst(2))
    else { return nil }
    return UInt32(pair[0]) << 8 | UInt32(pair[1])
  }
}
