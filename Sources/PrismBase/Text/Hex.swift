/// Hexadecimal, lower case when written, either case when read.
public enum Hex {
  /// Two digits for each byte.
  public static func encode(_ bytes: some Sequence<UInt8>) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(2 * bytes.underestimatedCount)
    for byte in bytes {
      text.append(digit(of: byte >> 4))
      text.append(digit(of: byte))
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Digits of random bytes, for keys, tokens and ids. Swift's system generator is the kernel's getrandom(2) on Linux.
  public static func random(byteCount: Int) -> String {
    var random = SystemRandomNumberGenerator()
    return encode((0..<byteCount).map { _ in UInt8.random(in: 0...255, using: &random) })
  }

  /// nil for an odd number of digits or anything that is not one.
  public static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    guard text.count.isMultiple(of: 2) else { return nil }
    var result: [UInt8] = []
    result.reserveCapacity(text.count / 2)
    var high: UInt8?
    for character in text {
      guard let digit = digit(character) else { return nil }
      if let first = high {
        result.append(first << 4 | digit)
        high = nil
      } else {
        high = digit
      }
    }
    return result
  }

  /// The bytes of hexadecimal digits; nil if invalid.
  public static func decode(_ text: String) -> [UInt8]? { decode(Array(text.utf8)) }

  /// The digit of the four low bits.
  @inlinable
  public static func digit(of bits: UInt8) -> UInt8 {
    let value = bits & 15
    return value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }

  /// The value of one digit, in either case; nil if `character` is not a digit.
  public static func digit(_ character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "A")...UInt8(ascii: "F"): character - UInt8(ascii: "A") + 10
    case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
    default: nil
    }
  }
}
