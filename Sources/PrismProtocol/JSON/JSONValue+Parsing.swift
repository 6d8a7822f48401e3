import PrismBase

/// Why a text is not JSON, and at which byte of it (from 0). The text itself is never quoted.
public struct JSONError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The rule of JSON that is broken.
  public let reason: String
  /// The byte at which it is broken, from 0.
  public let offset: Int
  public init(_ reason: String, at offset: Int) {
    self.reason = reason
    self.offset = offset
  }
  public var description: String { "not JSON at byte \(offset): \(reason)" }
}

extension JSONValue {
  /// Strict: RFC 8259, valid UTF-8, at most `depthMax` levels.
  /// - Parameter valuesMax: a bound on the memory that a tree takes, some 100 bytes a value.
  /// - Parameter allowsDuplicateKeys: in metas, which may hold them below their top level; else they are refused.
  public init(
    parsing bytes: some Collection<UInt8>, depthMax: Int = Limits.jsonDepthMax, valuesMax: Int = .max,
    allowsDuplicateKeys: Bool = false
  ) throws(JSONError) {
    var parser = JSONTreeParser(
      bytes: Array(bytes), depthMax: depthMax, valuesMax: valuesMax, allowsDuplicateKeys: allowsDuplicateKeys)
    self = try parser.document()
  }

  public init(parsing text: String) throws(JSONError) {
    try self.init(parsing: Array(text.utf8))
  }
}

/// Recursive descent over the bytes; depth is bounded, so the stack is too.
private struct JSONTreeParser {
  let bytes: [UInt8]
  let depthMax: Int
  let valuesMax: Int
  let allowsDuplicateKeys: Bool
  var position = 0
  var values = 0

  private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

  private func failure(_ reason: String) -> JSONError { JSONError(reason, at: position) }

  mutating func document() throws(JSONError) -> JSONValue {
    let result = try value(depth: 0)
    skipWhiteSpace()
    guard position == bytes.count else { throw failure("something follows the value") }
    return result
  }

  private mutating func skipWhiteSpace() {
    while let byte = next,
      byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r")
        || byte == UInt8(ascii: "\t")
    { position += 1 }
  }

  private mutating func value(depth: Int) throws(JSONError) -> JSONValue {
    skipWhiteSpace()
    values += 1
    guard values <= valuesMax else { throw failure("over \(valuesMax) values") }
    if next == UInt8(ascii: "{") || next == UInt8(ascii: "["), depth == depthMax {
      throw failure("over \(depthMax) levels deep")
    }
    switch next {
    case UInt8(ascii: "{"): return try object(depth: depth)
    case UInt8(ascii: "["): return try array(depth: depth)
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "t"): return try literal("true", .bool(true))
    case UInt8(ascii: "f"): return try literal("false", .bool(false))
    case UInt8(ascii: "n"): return try literal("null", .null)
    case .some(UInt8(ascii: "-")), .some(UInt8(ascii: "0")...UInt8(ascii: "9")): return .number(try number())
    case nil: throw failure("the text ends where a value is expected")
    default: throw failure("a value is expected")
    }
  }

  private mutating func literal(_ text: StaticString, _ value: JSONValue) throws(JSONError) -> JSONValue {
    let matches = text.withUTF8Buffer { bytes[position...].starts(with: $0) }
    guard matches else { throw failure("a value is expected") }
    position += text.utf8CodeUnitCount
    return value
  }

  private mutating func object(depth: Int) throws(JSONError) -> JSONValue {
    var members: [JSONValue.Member] = []
    var keys: Set<String> = []
    try list(close: UInt8(ascii: "}")) { (parser) throws(JSONError) in
      guard parser.next == UInt8(ascii: "\"") else { throw parser.failure("a key in quotes is expected") }
      let start = parser.position
      let key = try parser.string()
      guard keys.insert(key).inserted || parser.allowsDuplicateKeys else {
        throw JSONError("a key occurs twice", at: start)
      }
      parser.skipWhiteSpace()
      guard parser.next == UInt8(ascii: ":") else { throw parser.failure("a colon is expected") }
      parser.position += 1
      members.append(JSONValue.Member(key, try parser.value(depth: depth + 1)))
    }
    return .object(members)
  }

  private mutating func array(depth: Int) throws(JSONError) -> JSONValue {
    var elements: [JSONValue] = []
    try list(close: UInt8(ascii: "]")) { (parser) throws(JSONError) in
      elements.append(try parser.value(depth: depth + 1))
    }
    return .array(elements)
  }

  private mutating func list(close: UInt8, _ element: (inout Self) throws(JSONError) -> Void) throws(JSONError) {
    position += 1
    skipWhiteSpace()
    if next == close {
      position += 1
      return
    }
    while true {
      skipWhiteSpace()
      try element(&self)
      skipWhiteSpace()
      guard let byte = next else {
        throw failure("the text ends within \(close == UInt8(ascii: "}") ? "an object" : "a list")")
      }
      guard byte == UInt8(ascii: ",") || byte == close else {
        throw failure("a comma or the end of the \(close == UInt8(ascii: "}") ? "object" : "list") is expected")
      }
      position += 1
      if byte == close { return }
    }
  }

  private mutating func number() throws(JSONError) -> String {
    let start = position
    if next == UInt8(ascii: "-") { position += 1 }
    if next == UInt8(ascii: "0") { position += 1 } else { try digits() }
    if next == UInt8(ascii: ".") {
      position += 1
      try digits()
    }
    if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
      position += 1
      if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { position += 1 }
      try digits()
    }
    return String(decoding: bytes[start..<position], as: UTF8.self)
  }

  private mutating func digits() throws(JSONError) {
    let start = position
    while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
    guard position > start else { throw failure("a digit is expected") }
  }

  private mutating func string() throws(JSONError) -> String {
    let start = position
    position += 1
    var text: [UInt8] = []
    while let byte = next {
      position += 1
      switch byte {
      case UInt8(ascii: "\""):
        guard let result = String(validating: text, as: UTF8.self) else { throw JSONError("invalid UTF-8", at: start) }
        return result
      case UInt8(ascii: "\\"): try escape(to: &text)
      case 0..<UInt8(ascii: " "): throw JSONError("a control character in a string", at: position - 1)
      default: text.append(byte)
      }
    }
    throw failure("the text ends within a string")
  }

  private mutating func escape(to text: inout [UInt8]) throws(JSONError) {
    guard let byte = next else { throw failure("the text ends within a string") }
    position += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(byte)
    case UInt8(ascii: "b"): text.append(0x08)
    case UInt8(ascii: "f"): text.append(0x0C)
    case UInt8(ascii: "n"): text.append(UInt8(ascii: "\n"))
    case UInt8(ascii: "r"): text.append(UInt8(ascii: "\r"))
    case UInt8(ascii: "t"): text.append(UInt8(ascii: "\t"))
    case UInt8(ascii: "u"): text += try unicodeEscape()
    default: throw JSONError("an unknown escape", at: position - 1)
    }
  }

  private mutating func unicodeEscape() throws(JSONError) -> [UInt8] {
    let start = position
    var code = try hexDigits()
    if (0xD800..<0xDC00).contains(code), bytes[position...].starts(with: [UInt8(ascii: "\\"), UInt8(ascii: "u")]) {
      position += 2
      let low = try hexDigits()
      guard (0xDC00..<0xE000).contains(low) else { throw JSONError("a lone surrogate", at: start) }
      code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
    }
    guard let scalar = Unicode.Scalar(code) else { throw JSONError("a lone surrogate", at: start) }
    return Array(String(Character(scalar)).utf8)
  }

  private mutating func hexDigits() throws(JSONError) -> UInt32 {
    guard position + 4 <= bytes.count, let pair = Hex.decode(bytes[position..<position + 4]) else {
      throw failure("four hexadecimal digits are expected")
    }
    position += 4
    return UInt32(pair[0]) << 8 | UInt32(pair[1])
  }
}
