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
    parsing text: Span<UInt8>, depthMax: Int = Limits.jsonDepthMax, valuesMax: Int = .max,
    allowsDuplicateKeys: Bool = false
  ) throws(JSONError) {
    var reader = JSONTreeReader(
      scanner: JSONScanner(depthMax: depthMax), valuesMax: valuesMax, allowsDuplicateKeys: allowsDuplicateKeys)
    self = try reader.document(text)
  }

  /// The same of bytes that may lie anywhere.
  public init(
    parsing bytes: some Collection<UInt8>, depthMax: Int = Limits.jsonDepthMax, valuesMax: Int = .max,
    allowsDuplicateKeys: Bool = false
  ) throws(JSONError) {
    let bytes = Array(bytes)
    try self.init(
      parsing: bytes.span, depthMax: depthMax, valuesMax: valuesMax, allowsDuplicateKeys: allowsDuplicateKeys)
  }

  public init(parsing text: String) throws(JSONError) {
    try self.init(parsing: Array(text.utf8))
  }

  /// - Parameter members: of an object, without its braces, as rows keep them.
  public init(
    parsingMembers members: some Collection<UInt8>, valuesMax: Int = .max, allowsDuplicateKeys: Bool = false
  ) throws(JSONError) {
    let object = [UInt8(ascii: "{")] + Array(members) + [UInt8(ascii: "}")]
    try self.init(parsing: object, valuesMax: valuesMax, allowsDuplicateKeys: allowsDuplicateKeys)
  }
}

/// Keeps what the scanner passes over. Depth is bounded, so the stack is too.
private struct JSONTreeReader {
  var scanner: JSONScanner
  let valuesMax: Int
  let allowsDuplicateKeys: Bool
  var values = 0

  mutating func document(_ text: Span<UInt8>) throws(JSONError) -> JSONValue {
    let result = try value(text, depth: 0)
    guard scanner.next(text) == nil else { throw scanner.failure("something follows the value") }
    return result
  }

  private mutating func value(_ text: Span<UInt8>, depth: Int) throws(JSONError) -> JSONValue {
    let first = scanner.next(text)
    values += 1
    guard values <= valuesMax else { throw scanner.failure("over \(valuesMax) values") }
    switch first {
    case UInt8(ascii: "{"): return .object(try members(text, depth: depth))
    case UInt8(ascii: "["): return .array(try elements(text, depth: depth))
    case UInt8(ascii: "\""):
      let start = scanner.position
      let string = try scanner.string(text)
      return .string(try checked(string, from: start, in: text))
    default:
      let start = scanner.position
      try scanner.skipValue(text, depth: depth)
      switch first {
      case UInt8(ascii: "t"): return .bool(true)
      case UInt8(ascii: "f"): return .bool(false)
      case UInt8(ascii: "n"): return .null
      default: return .number(ScannedString(range: start..<scanner.position, hasEscapes: false).string(in: text))
      }
    }
  }

  private mutating func members(_ text: Span<UInt8>, depth: Int) throws(JSONError) -> [JSONValue.Member] {
    var (members, keys): ([JSONValue.Member], Set<ExactText>) = ([], [])
    guard try scanner.enter(text, close: UInt8(ascii: "}"), depth: depth) else { return members }
    repeat {
      _ = scanner.next(text)
      let start = scanner.position
      let name = try scanner.key(text)
      let key = try checked(name, from: start, in: text)
      guard keys.insert(ExactText(key)).inserted || allowsDuplicateKeys else {
        throw JSONError("a key occurs twice", at: start)
      }
      members.append(JSONValue.Member(key, try value(text, depth: depth + 1)))
    } while try scanner.another(text, close: UInt8(ascii: "}"))
    return members
  }

  private mutating func elements(_ text: Span<UInt8>, depth: Int) throws(JSONError) -> [JSONValue] {
    var elements: [JSONValue] = []
    guard try scanner.enter(text, close: UInt8(ascii: "]"), depth: depth) else { return elements }
    repeat {
      elements.append(try value(text, depth: depth + 1))
    } while try scanner.another(text, close: UInt8(ascii: "]"))
    return elements
  }

  /// - Parameter start: its opening quote.
  private func checked(_ string: ScannedString, from start: Int, in text: Span<UInt8>) throws(JSONError) -> String {
    guard scanner.invalidUTF8 == nil else { throw JSONError("invalid UTF-8", at: start) }
    return string.string(in: text)
  }
}
