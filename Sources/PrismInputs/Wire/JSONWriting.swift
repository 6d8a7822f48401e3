import PrismBase
import PrismProtocol

// The readers of other formats write JSON with these, without a tree between.
extension [UInt8] {
  /// Appends a JSON string of bytes that should be UTF-8; what is not becomes U+FFFD.
  mutating func appendQuoted(_ text: Span<UInt8>) {
    append(.quote)
    if text.isASCII {
      appendEscaped(text)
    } else {
      let whole = text.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
      appendEscaped([UInt8](whole.utf8).span)
    }
    append(.quote)
  }

  /// Runs without an escape are copied at once. Behind one there may be many: some bytes go through a piece.
  private mutating func appendEscaped(_ text: Span<UInt8>) {
    var copied = 0
    while let index = text.firstEscape(from: copied) {
      append(copying: text, copied..<index)
      copied = Swift.min(index + EscapedPiece.textBytes, text.count)
      var piece = EscapedPiece()
      piece.append(escaping: text, index..<copied)
      append(copying: piece.bytes.span, 0..<piece.count)
    }
    append(copying: text, copied..<text.count)
  }

  /// A comma, unless a list or an object begins here.
  mutating func appendSeparator() {
    if let last, last != .openBrace, last != .openBracket { append(.comma) }
  }

  /// Two digits, lower case.
  mutating func appendHex(_ byte: UInt8) {
    append(Hex.digit(of: byte >> 4))
    append(Hex.digit(of: byte & 15))
  }

  /// As proto3's JSON has it: NaN and the infinities are strings.
  mutating func appendNumber(_ number: Double) {
    if number.isFinite {
      append(contentsOf: number.description.utf8)
    } else {
      append(contentsOf: (number.isNaN ? #""NaN""# : number > 0 ? #""Infinity""# : #""-Infinity""#).utf8)
    }
  }
}

/// A few bytes with their escapes, the longest of which has six for one.
private struct EscapedPiece {
  static let textBytes = 64
  private(set) var bytes = InlineArray<384, UInt8>(repeating: 0)
  private(set) var count = 0

  /// - Parameter range: of at most `textBytes`.
  mutating func append(escaping text: Span<UInt8>, _ range: Range<Int>) {
    var index = range.lowerBound
    while index < range.upperBound {
      if index + 8 <= range.upperBound {
        // All eight are written, and those before the first escape count.
        let (word, plain) = text.word(at: index)
        var output = bytes.mutableSpan
        var room = output.mutableBytes
        room.storeBytes(of: word.littleEndian, toByteOffset: count, as: UInt64.self)
        (index, count) = (index + plain, count + plain)
        if plain == 8 { continue }
      }
      append(escaping: text[index])
      index += 1
    }
  }

  private mutating func append(_ byte: UInt8) {
    bytes[count] = byte
    count += 1
  }

  private mutating func append(escaping byte: UInt8) {
    switch byte {
    case .quote, .backslash: append(.backslash)
    case UInt8(ascii: "\n"):
      append(.backslash)
      return append(UInt8(ascii: "n"))
    case 0..<UInt8(ascii: " "), 127:
      append(.backslash)
      append(UInt8(ascii: "u"))
      append(UInt8(ascii: "0"))
      append(UInt8(ascii: "0"))
      append(Hex.digit(of: byte >> 4))
      return append(Hex.digit(of: byte))
    default: break
    }
    append(byte)
  }
}

extension Span<UInt8> {
  fileprivate var isASCII: Bool {
    withUnsafeBufferPointer { bytes in bytes.reduce(0) { $0 | $1 } < 0x80 }
  }

  /// The first byte from `start` on that a JSON string can't have as it is; eight bytes at a time.
  fileprivate func firstEscape(from start: Int) -> Int? {
    var index = start
    while index + 8 <= count {
      let plain = word(at: index).plain
      if plain < 8 { return index + plain }
      index += 8
    }
    while index < count {
      if Self.escapes(UInt64(self[index]) | 0x2020_2020_2020_2000) != 0 { return index }
      index += 1
    }
    return nil
  }

  /// The eight bytes from `index` on, and how many of them come before one that a JSON string can't have.
  @inline(__always) fileprivate func word(at index: Int) -> (word: UInt64, plain: Int) {
    let word = UInt64(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self))
    return (word, Self.escapes(word).trailingZeroBitCount / 8)
  }

  /// The top bit of each byte that is a quote, a backslash or a control character. (A borrow may mark bytes above the lowest
  /// mark too; only the lowest is used.)
  @inline(__always) private static func escapes(_ word: UInt64) -> UInt64 {
    let ones: UInt64 = 0x0101_0101_0101_0101
    func equals(_ byte: UInt8) -> UInt64 {
      let difference = word ^ (ones &* UInt64(byte))
      return (difference &- ones) & ~difference
    }
    let control = (word &- (ones &* UInt64(UInt8(ascii: " ")))) & ~word
    return (equals(.quote) | equals(.backslash) | equals(127) | control) & (ones &* 0x80)
  }
}

extension [UInt8] {
  mutating func appendQuotedDecimal(_ number: UInt64) {
    append(.quote)
    append(decimal: number)
    append(.quote)
  }

  mutating func appendQuotedDecimal(_ number: Int64) {
    append(.quote)
    append(decimal: number)
    append(.quote)
  }

  /// A JSON string of hexadecimal digits.
  mutating func append(hexadecimal bytes: Span<UInt8>) {
    append(.quote)
    for index in bytes.indices { appendHex(bytes[index]) }
    append(.quote)
  }

  /// A JSON string of base64 (RFC 4648, section 4).
  mutating func append(base64 bytes: Span<UInt8>) {
    append(.quote)
    append(contentsOf: Base64.encode([UInt8](copying: bytes)).utf8)
    append(.quote)
  }

  init(copying bytes: Span<UInt8>) {
    self = []
    append(copying: bytes, bytes.indices)
  }
}

extension UInt8 {
  static let quote = UInt8(ascii: "\""), backslash = UInt8(ascii: "\\")
  static let comma = UInt8(ascii: ","), colon = UInt8(ascii: ":")
  static let openBrace = UInt8(ascii: "{"), closeBrace = UInt8(ascii: "}")
  static let openBracket = UInt8(ascii: "["), closeBracket = UInt8(ascii: "]")
}
