/// Base64 of RFC 4648, section 4: the standard alphabet, padded, nothing else taken.
public enum Base64 {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  private static let values: [UInt8] = {
    var table = [UInt8](repeating: 0xFF, count: 256)
    for (value, character) in alphabet.enumerated() { table[Int(character)] = UInt8(value) }
    return table
  }()

  /// Four characters for three bytes, padded.
  public static func encode(_ bytes: [UInt8]) -> String {
    var result: [UInt8] = []
    result.reserveCapacity((bytes.count + 2) / 3 * 4)
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let count = min(3, bytes.count - start)
      let group = (0..<3).reduce(UInt32(0)) { $0 << 8 | ($1 < count ? UInt32(bytes[start + $1]) : 0) }
      for position in 0..<4 {
        result.append(position <= count ? alphabet[Int(group >> (18 - 6 * position) & 63)] : UInt8(ascii: "="))
      }
    }
    return String(decoding: result, as: UTF8.self)
  }

  /// nil unless `text` is base64: its length a multiple of 4, padded, the unused bits of the last digit zero.
  public static func decode(_ text: some Collection<UInt8>) -> [UInt8]? {
    let text = Array(text)
    var result: [UInt8] = []
    return decode(text.span, 0..<text.count, appendingTo: &result) ? result : nil
  }

  /// Decodes `range` of `text` to the end of `result`. false, and `result` as it was, unless it is base64 as above.
  public static func decode(_ text: Span<UInt8>, _ range: Range<Int>, appendingTo result: inout [UInt8]) -> Bool {
    guard range.count.isMultiple(of: 4) else { return false }
    if range.isEmpty { return true }
    let start = result.count
    let padding =
      text[range.upperBound - 1] != UInt8(ascii: "=") ? 0 : text[range.upperBound - 2] != UInt8(ascii: "=") ? 1 : 2
    result.append(contentsOf: repeatElement(0, count: range.count / 4 * 3 - padding))
    var end = start
    for group in stride(from: range.lowerBound, to: range.upperBound, by: 4) {
      let isLast = group + 4 == range.upperBound
      let digits = isLast ? 4 - padding : 4
      var (bits, wrong) = (UInt32(0), UInt8(0))
      for index in 0..<4 {
        let value = index < digits ? values[Int(text[group + index])] : 0
        wrong |= value
        bits = bits << 6 | UInt32(value & 63)
      }
      let count = digits - 1
      guard wrong & 0xC0 == 0, bits & (0xFF_FFFF >> UInt32(8 * count)) == 0 else {
        result.removeSubrange(start...)
        return false
      }
      for index in 0..<count { result[end + index] = UInt8(truncatingIfNeeded: bits >> UInt32(16 - 8 * index)) }
      end += count
    }
    return true
  }
}
