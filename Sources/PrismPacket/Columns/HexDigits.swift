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
      let values = (word & 0x0F * ones) &+ (word >> 6 & ones) &* 9
      guard values & 0xF0 * ones == 0, letters(values) == word else { return false }
      let pairs = values << 4 | values >> 8
      let packed = pairs & 0xFF | pairs >> 8 & 0xFF00 | pairs >> 16 & 0xFF_0000 | pairs >> 24 & 0xFF00_0000
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
    for index in 0..<count {
      text[2 * index] = digit(bytes[index] >> 4)
      text[2 * index + 1] = digit(bytes[index] & 15)
    }
  }

  @inline(__always) static func digit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }

  /// nil for anything but a lower-case digit.
  @inline(__always) static func value(_ digit: UInt8) -> UInt8? {
    let number = digit &- UInt8(ascii: "0")
    if number < 10 { return number }
    let letter = digit &- UInt8(ascii: "a")
    return letter < 6 ? letter + 10 : nil
  }

  /// The digits of eight values below 16. (A byte of the sum is over 15 from 10 on.)
  @inline(__always) private static func letters(_ values: UInt64) -> UInt64 {
    values &+ 0x30 * ones &+ ((values &+ 6 * ones) >> 4 & ones) &* 39
  }
}
