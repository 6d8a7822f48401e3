import PrismBase
import PrismProtocol

// The readers of other formats write JSON with these, without a tree between.
extension [UInt8] {
  private static let digits = Array("0123456789abcdef".utf8)

  /// Appends a JSON string of bytes that should be UTF-8; what is not becomes U+FFFD.
  mutating func appendQuoted(_ text: Span<UInt8>) {
    append(.quote)
    var isASCII = true
    for index in text.indices where text[index] >= 0x80 {
      isASCII = false
      break
    }
    if isASCII {
      appendEscaped(text)
    } else {
      var copy: [UInt8] = []
      copy.reserveCapacity(text.count)
      for index in text.indices { copy.append(text[index]) }
      let whole = String(decoding: copy, as: UTF8.self)
      appendEscaped([UInt8](whole.utf8).span)
    }
    append(.quote)
  }

  private mutating func appendEscaped(_ text: Span<UInt8>) {
    for index in text.indices {
      let byte = text[index]
      switch byte {
      case .quote, .backslash:
        append(.backslash)
        append(byte)
      case UInt8(ascii: "\n"):
        append(.backslash)
        append(UInt8(ascii: "n"))
      case 0..<32, 127:
        append(word: "\\u00")
        appendHex(byte)
      default: append(byte)
      }
    }
  }

  /// Two digits, lower case.
  mutating func appendHex(_ byte: UInt8) {
    for digit in [byte >> 4, byte & 15] { append(Self.digits[Int(digit)]) }
  }

  mutating func appendDecimal(_ number: UInt64) {
    var rest = number
    var digits = InlineArray<20, UInt8>(repeating: 0)
    var first = 20
    repeat {
      first -= 1
      digits[first] = Self.digits[Int(rest % 10)]
      rest /= 10
    } while rest > 0
    for index in first..<20 { append(digits[index]) }
  }

  mutating func appendDecimal(_ number: Int64) {
    if number < 0 { append(.minus) }
    appendDecimal(number.magnitude)
  }

  /// As proto3's JSON has it: NaN and the infinities are strings.
  mutating func appendNumber(_ number: Double) {
    if number.isFinite {
      append(contentsOf: number.description.utf8)
    } else {
      append(contentsOf: (number.isNaN ? #""NaN""# : number > 0 ? #""Infinity""# : #""-Infinity""#).utf8)
    }
  }

  mutating func append(word: StaticString) { word.withUTF8Buffer { append(contentsOf: $0) } }
}

extension [UInt8] {
  mutating func appendQuotedDecimal(_ number: UInt64) {
    append(.quote)
    appendDecimal(number)
    append(.quote)
  }

  mutating func appendQuotedDecimal(_ number: Int64) {
    append(.quote)
    appendDecimal(number)
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
  static let quote = UInt8(ascii: "\""), backslash = UInt8(ascii: "\\"), minus = UInt8(ascii: "-")
  static let comma = UInt8(ascii: ","), colon = UInt8(ascii: ":")
  static let openBrace = UInt8(ascii: "{"), closeBrace = UInt8(ascii: "}")
  static let openBracket = UInt8(ascii: "["), closeBracket = UInt8(ascii: "]")
}
