import PrismBase

/// A JSON string in a text of less than 4 GiB: its range without the quotes, and whether it has escapes.
public struct ScannedString: Sendable, Equatable {
  // A scanned report has several of them and is handed on by value: half the bytes are copied in registers.
  private let start: UInt32
  private let end: UInt32
  /// Whether the string has a backslash.
  public let hasEscapes: Bool

  public init(range: Range<Int>, hasEscapes: Bool) {
    (start, end, self.hasEscapes) = (UInt32(range.lowerBound), UInt32(range.upperBound), hasEscapes)
  }

  /// The range in the text, without the quotes.
  public var range: Range<Int> { Int(start)..<Int(end) }

  /// Appends the value of the string. The string must have been scanned in `text`.
  public func append(from text: Span<UInt8>, to result: inout [UInt8]) {
    guard hasEscapes else {
      result.append(copying: text, range)
      return
    }
    var index = range.lowerBound
    while index < range.upperBound {
      if text[index] == UInt8(ascii: "\\") {
        Self.appendEscape(text, at: &index, to: &result)
      } else {
        result.append(text[index])
        index += 1
      }
    }
  }

  func decoded(_ text: Span<UInt8>) -> [UInt8] {
    var bytes: [UInt8] = []
    append(from: text, to: &bytes)
    return bytes
  }

  func isPrintable(in text: Span<UInt8>) -> Bool {
    for index in range where !text[index].isPrintable { return false }
    return true
  }

  /// The value of the string. It must have been scanned in `text`.
  public func string(in text: Span<UInt8>) -> String {
    String(decoding: decoded(text), as: UTF8.self)
  }

  /// Whether its value is exactly these bytes.
  public func equals(_ bytes: [UInt8], in text: Span<UInt8>) -> Bool {
    guard !hasEscapes else { return decoded(text) == bytes }
    guard bytes.count == range.count else { return false }
    for index in bytes.indices where bytes[index] != text[range.lowerBound + index] { return false }
    return true
  }

  private static func appendEscape(_ text: Span<UInt8>, at index: inout Int, to result: inout [UInt8]) {
    let letter = text[index + 1]
    index += 2
    switch letter {
    case UInt8(ascii: "b"): result.append(0x08)
    case UInt8(ascii: "f"): result.append(0x0C)
    case UInt8(ascii: "n"): result.append(UInt8(ascii: "\n"))
    case UInt8(ascii: "r"): result.append(UInt8(ascii: "\r"))
    case UInt8(ascii: "t"): result.append(UInt8(ascii: "\t"))
    case UInt8(ascii: "u"):
      var code = unit(text, at: &index)
      if 0xD800..<0xDC00 ~= code {
        index += 2
        code = 0x10000 + (code - 0xD800) << 10 + (unit(text, at: &index) - 0xDC00)
      }
      result.append(contentsOf: String(Unicode.Scalar(code) ?? "\u{FFFD}").utf8)
    default: result.append(letter)
    }
  }

  private static func unit(_ text: Span<UInt8>, at index: inout Int) -> UInt32 {
    defer { index += 4 }
    return (index..<index + 4).reduce(0) { $0 << 4 | UInt32(Hex.digit(text[$1]) ?? 0) }
  }
}

extension UInt8 {
  /// ASCII that no output escapes, but for quotes and backslashes.
  var isPrintable: Bool { UInt8(ascii: " ")...UInt8(ascii: "~") ~= self }
}

extension [UInt8] {
  /// Appends `range` of `text` in one copy.
  public mutating func append(copying text: Span<UInt8>, _ range: Range<Int>) {
    text.extracting(range).withUnsafeBufferPointer { append(contentsOf: $0) }
  }
}

extension Span<UInt8> {
  /// An integer in decimal, from -2^63 to 2^64 - 1.
  func integer(_ range: Range<Int>) -> Int128? {
    let isNegative = !range.isEmpty && self[range.lowerBound] == UInt8(ascii: "-")
    var (value, index) = (Int64(0), range.lowerBound + (isNegative ? 1 : 0))
    if 1...18 ~= range.upperBound - index {
      while index < range.upperBound, self[index] &- UInt8(ascii: "0") < 10 {
        value = value * 10 + Int64(self[index] &- UInt8(ascii: "0"))
        index += 1
      }
      if index == range.upperBound { return Int128(isNegative ? -value : value) }
    }
    let text = extracting(range).withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
    return Int64(text).map { Int128($0) } ?? UInt64(text).map { Int128($0) }
  }

  func equals(_ word: StaticString, at range: Range<Int>) -> Bool {
    guard word.utf8CodeUnitCount == range.count else { return false }
    return word.withUTF8Buffer { expected in
      for index in 0..<expected.count where expected[index] != self[range.lowerBound + index] { return false }
      return true
    }
  }
}
