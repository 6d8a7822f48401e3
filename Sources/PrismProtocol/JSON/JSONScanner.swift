import PrismBase

/// Walks over JSON text without building anything: RFC 8259, valid UTF-8, at most `depthMax` levels.
///
/// It holds only a position; the text is handed to every call as a bounds-checked `Span`, so input that was written to
/// break it can't reach beyond it. Strings are passed over eight bytes at a time.
struct JSONScanner {
  var position = 0
  var depthMax = Limits.jsonDepthMax
  /// The first byte that is not UTF-8. Scanning goes on behind it, because what the rest of a line says of the payload
  /// that follows is needed to find the next line.
  private(set) var invalidUTF8: Int?

  /// The next byte after white space; nil at the end.
  @inline(__always) mutating func next(_ text: Span<UInt8>) -> UInt8? {
    while position < text.count {
      let byte = text[position]
      guard
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r")
          || byte == UInt8(ascii: "\t")
      else { return byte }
      position += 1
    }
    return nil
  }

  /// - Parameter depth: how many containers stand around the value.
  mutating func skipValue(_ text: Span<UInt8>, depth: Int) throws(JSONError) {
    guard let byte = next(text) else { throw failure("the text ends where a value is expected") }
    switch byte {
    case UInt8(ascii: "\""): _ = try string(text)
    case UInt8(ascii: "{"): try skipObject(text, depth: depth)
    case UInt8(ascii: "["): try skipArray(text, depth: depth)
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): try skipNumber(text)
    case UInt8(ascii: "t"): try literal("true", text)
    case UInt8(ascii: "f"): try literal("false", text)
    case UInt8(ascii: "n"): try literal("null", text)
    default: throw failure("a value is expected")
    }
  }

  /// Enters a container at its opening bracket. Returns false if it is empty; then `position` is behind it.
  @inline(__always) mutating func enter(_ text: Span<UInt8>, close: UInt8, depth: Int) throws(JSONError) -> Bool {
    guard depth < depthMax else { throw failure("over \(depthMax) levels deep") }
    position += 1
    guard next(text) == close else { return true }
    position += 1
    return false
  }

  /// After an element: true when another one follows, false when the container was left.
  @inline(__always) mutating func another(_ text: Span<UInt8>, close: UInt8) throws(JSONError) -> Bool {
    guard let byte = next(text) else {
      throw failure("the text ends within \(close == UInt8(ascii: "}") ? "an object" : "a list")")
    }
    guard byte == UInt8(ascii: ",") || byte == close else {
      throw failure("a comma or the end of the \(close == UInt8(ascii: "}") ? "object" : "list") is expected")
    }
    position += 1
    return byte == UInt8(ascii: ",")
  }

  /// Reads a member's key and colon and leaves `position` before its value.
  @inline(__always) mutating func key(_ text: Span<UInt8>) throws(JSONError) -> ScannedString {
    guard next(text) == UInt8(ascii: "\"") else { throw failure("a key in quotes is expected") }
    let key = try string(text)
    guard next(text) == UInt8(ascii: ":") else { throw failure("a colon is expected") }
    position += 1
    return key
  }

  private mutating func skipObject(_ text: Span<UInt8>, depth: Int) throws(JSONError) {
    guard try enter(text, close: UInt8(ascii: "}"), depth: depth) else { return }
    repeat {
      _ = try key(text)
      try skipValue(text, depth: depth + 1)
    } while try another(text, close: UInt8(ascii: "}"))
  }

  private mutating func skipArray(_ text: Span<UInt8>, depth: Int) throws(JSONError) {
    guard try enter(text, close: UInt8(ascii: "]"), depth: depth) else { return }
    repeat { try skipValue(text, depth: depth + 1) } while try another(text, close: UInt8(ascii: "]"))
  }

  private mutating func literal(_ word: StaticString, _ text: Span<UInt8>) throws(JSONError) {
    let range = position..<position + word.utf8CodeUnitCount
    guard range.upperBound <= text.count, text.equals(word, at: range) else { throw failure("a value is expected") }
    position = range.upperBound
  }

  /// Goes through sound members without their braces, up to `end`; through those before a place that is not sound.
  /// - Parameter take: a key, and the range of key, colon and value.
  mutating func forEachMember(_ text: Span<UInt8>, to end: Int, _ take: (ScannedString, Range<Int>) -> Void) {
    while position < end, next(text) == UInt8(ascii: "\"") {
      let start = position
      guard let key = try? key(text), (try? skipValue(text, depth: 1)) != nil else { return }
      take(key, start..<position)
      if next(text) == UInt8(ascii: ",") { position += 1 }
    }
  }

  func failure(_ reason: String) -> JSONError { JSONError(reason, at: position) }

  // MARK: Numbers

  mutating func skipNumber(_ text: Span<UInt8>) throws(JSONError) {
    if text[position] == UInt8(ascii: "-") { position += 1 }
    if position < text.count, text[position] == UInt8(ascii: "0") { position += 1 } else { try digits(text) }
    if position < text.count, text[position] == UInt8(ascii: ".") {
      position += 1
      try digits(text)
    }
    guard position < text.count, text[position] == UInt8(ascii: "e") || text[position] == UInt8(ascii: "E") else {
      return
    }
    position += 1
    if position < text.count, text[position] == UInt8(ascii: "+") || text[position] == UInt8(ascii: "-") {
      position += 1
    }
    try digits(text)
  }

  @inline(__always) private mutating func digits(_ text: Span<UInt8>) throws(JSONError) {
    let start = position
    while position < text.count, text[position] &- UInt8(ascii: "0") < 10 { position += 1 }
    guard position > start else { throw failure("a digit is expected") }
  }

  // MARK: Strings

  /// Reads a string from its opening quote and leaves `position` behind the closing one.
  mutating func string(_ text: Span<UInt8>) throws(JSONError) -> ScannedString {
    position += 1
    let start = position
    var hasEscapes = false
    while true {
      skipPlain(text)
      guard position < text.count else { throw failure("the text ends within a string") }
      switch text[position] {
      case UInt8(ascii: "\""):
        position += 1
        return ScannedString(range: start..<position - 1, hasEscapes: hasEscapes)
      case UInt8(ascii: "\\"):
        hasEscapes = true
        try skipEscape(text)
      case 0..<UInt8(ascii: " "): throw failure("a control character in a string")
      case 0x80...: skipNonASCII(text)
      default: position += 1
      }
    }
  }

  /// Passes over ASCII that needs no look, as far as whole words of eight bytes reach.
  @inline(__always) private mutating func skipPlain(_ text: Span<UInt8>) {
    let bytes = text.bytes
    while position + 8 <= text.count {
      let word = UInt64(littleEndian: bytes.unsafeLoadUnaligned(fromByteOffset: position, as: UInt64.self))
      let special = Self.specials(word)
      guard special == 0 else {
        position += special.trailingZeroBitCount / 8
        return
      }
      position += 8
    }
  }

  /// The top bit of each byte that is a quote, a backslash, a control character or not ASCII. (A borrow may mark bytes
  /// above the lowest mark too; only the lowest is used.)
  @inline(__always) private static func specials(_ word: UInt64) -> UInt64 {
    let ones: UInt64 = 0x0101_0101_0101_0101
    let quote = word ^ (ones &* UInt64(UInt8(ascii: "\"")))
    let backslash = word ^ (ones &* UInt64(UInt8(ascii: "\\")))
    let control = (word &- (ones &* UInt64(UInt8(ascii: " ")))) & ~word
    return (((quote &- ones) & ~quote) | ((backslash &- ones) & ~backslash) | control | word) & (ones &* 0x80)
  }

  fileprivate mutating func skipEscape(_ text: Span<UInt8>) throws(JSONError) {
    let start = position
    guard position + 1 < text.count else { throw failure("the text ends within a string") }
    switch text[position + 1] {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"), UInt8(ascii: "b"), UInt8(ascii: "f"),
      UInt8(ascii: "n"), UInt8(ascii: "r"), UInt8(ascii: "t"):
      position += 2
    case UInt8(ascii: "u"):
      let unit = try codeUnit(text)
      guard 0xD800..<0xE000 ~= unit else { return }
      guard unit < 0xDC00, position + 1 < text.count, text[position] == UInt8(ascii: "\\"),
        text[position + 1] == UInt8(ascii: "u"),
        0xDC00..<0xE000 ~= (try codeUnit(text))
      else { throw JSONError("a lone surrogate", at: start + 2) }
    default: throw JSONError("an unknown escape", at: start + 1)
    }
  }

  /// Reads the four digits of the `\u` at `position`.
  private mutating func codeUnit(_ text: Span<UInt8>) throws(JSONError) -> UInt32 {
    position += 2
    var unit: UInt32 = 0
    for index in position..<position + 4 {
      guard index < text.count, let digit = Hex.digit(text[index]) else {
        throw failure("four hexadecimal digits are expected")
      }
      unit = unit << 4 | UInt32(digit)
    }
    position += 4
    return unit
  }

  /// Passes over one sequence of several bytes, or notes that it is invalid (Unicode 15, table 3-7).
  private mutating func skipNonASCII(_ text: Span<UInt8>) {
    let length = Self.sequenceLength(text, at: position)
    if length == 0, invalidUTF8 == nil { invalidUTF8 = position }
    position += max(length, 1)
  }

  private static func sequenceLength(_ text: Span<UInt8>, at start: Int) -> Int {
    func continues(_ offset: Int, _ range: ClosedRange<UInt8> = 0x80...0xBF) -> Bool {
      start + offset < text.count && range.contains(text[start + offset])
    }
    switch text[start] {
    case 0xC2...0xDF: return continues(1) ? 2 : 0
    case 0xE0: return continues(1, 0xA0...0xBF) && continues(2) ? 3 : 0
    case 0xED: return continues(1, 0x80...0x9F) && continues(2) ? 3 : 0
    case 0xE1...0xEF: return continues(1) && continues(2) ? 3 : 0
    case 0xF0: return continues(1, 0x90...0xBF) && continues(2) && continues(3) ? 4 : 0
    case 0xF1...0xF3: return continues(1) && continues(2) && continues(3) ? 4 : 0
    case 0xF4: return continues(1, 0x80...0x8F) && continues(2) && continues(3) ? 4 : 0
    default: return 0
    }
  }
}

extension Span<UInt8> {
  /// The end of the escape that begins at a backslash; nil: JSON has no such escape, or it is half of a surrogate pair.
  package func endOfEscape(at start: Int) -> Int? {
    var scanner = JSONScanner(position: start)
    guard (try? scanner.skipEscape(self)) != nil else { return nil }
    return scanner.position
  }
}
