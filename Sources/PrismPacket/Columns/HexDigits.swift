import PrismBase

/// Lower-case hexadecimal, eight digits at a time.
enum HexDigits {
  private static let ones: UInt64 = 0x0101_0101_0101_0101

  /// - Parameter count: of the digits; even.
  /// - Parameter bytes: gets half as many bytes.
  /// - Returns: whether all are digits.
  static func decode(_ text: UnsafePointer<UInt8>, _ count: Int, _ bytes: UnsafeMutablePointer<UInt8>) -> Bool {
    var index = 0
    while index + 8 <= count {
      let word = UnsafeRawPointer(text + index).loadUnaligned(as: UInt64.self).littleEndian
      let values = (word & 0x0F0F_0F0F_0F0F_0F0F) &+ ((word >> 6) & ones) &* 9
      guard values & 0xF0F0_F0F0_F0F0_F0F0 == 0, digits(of: values) == word else { return false }
      let pairs = (values << 4) | (values >> 8)
      let packed =
        (pairs & 0xFF) | ((pairs >> 8) & 0xFF00) | ((pairs >> 16) & 0xFF_0000) | ((pairs >> 24) & 0xFF00_0000)
      UnsafeMutableRawPointer(bytes + index / 2).storeBytes(
        of: UInt32(truncatingIfNeeded: packed).littleEndian, as: UInt32.self)
      index += 8
    }
    while index < count {
      guard let high = value(text[index]), let low = value(text[index + 1]) else { return false }
      bytes[index / 2] = high << 4 | low
      index += 2
    }
    return true
  }

  /// - Parameter text: gets twice as many digits.
  static func encode(_ bytes: UnsafePointer<UInt8>, _ count: Int, _ text: UnsafeMutablePointer<UInt8>) {
    var index = 0
    while index + 4 <= count {
      let packed = UInt64(UnsafeRawPointer(bytes + index).loadUnaligned(as: UInt32.self).littleEndian)
      let pairs =
        (packed & 0xFF) | ((packed & 0xFF00) << 8) | ((packed & 0xFF_0000) << 16) | ((packed & 0xFF00_0000) << 24)
      let values = ((pairs >> 4) & 0x000F_000F_000F_000F) | ((pairs & 0x000F_000F_000F_000F) << 8)
      UnsafeMutableRawPointer(text + 2 * index).storeBytes(of: digits(of: values).littleEndian, as: UInt64.self)
      index += 4
    }
    for index in index..<count {
      text[2 * index] = Hex.digit(of: bytes[index] >> 4)
      text[2 * index + 1] = Hex.digit(of: bytes[index])
    }
  }

  /// nil for anything but a lower-case digit.
  @inline(__always) static func value(_ digit: UInt8) -> UInt8? {
    let number = digit &- UInt8(ascii: "0")
    if number < 10 { return number }
    let letter = digit &- UInt8(ascii: "a")
    return letter < 6 ? letter + 10 : nil
  }

  /// The digits of eight values below 16: six more make 16 of each letter.
  @inline(__always) private static func digits(of values: UInt64) -> UInt64 {
    let letters = ((values &+ 0x0606_0606_0606_0606) >> 4) & ones
    return values &+ 0x3030_3030_3030_3030 &+ letters &* 39
  }
}
