/// A JSON value as a tree (RFC 8259), for what is not on the hot path: control messages, configuration, answers.
///
/// Members keep their order. Numbers keep their text, so a 64-bit integer or a long decimal passes through unharmed.
public indirect enum JSONValue: Codable, Equatable, Sendable {
  case null
  case bool(Bool)
  case number(String)
  case string(String)
  case array([JSONValue])
  case object([Member])

  /// A key with its value; an object keeps their order.
  public struct Member: Codable, Equatable, Sendable {
    /// The key without escapes.
    public let key: String
    /// The value of the member.
    public let value: JSONValue
    public init(_ key: String, _ value: JSONValue) {
      self.key = key
      self.value = value
    }
  }

  /// A number from an integer.
  public static func int(_ value: some BinaryInteger) -> JSONValue { .number(String(value)) }
  /// A number from a floating-point value; null if it is not finite.
  public static func double(_ value: Double) -> JSONValue { value.isFinite ? .number(String(value)) : .null }

  /// The member `key` of an object; nil for another kind of value or no such member.
  public subscript(key: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members.first { $0.key == key }?.value
  }

  /// The text; nil if it is no string.
  public var string: String? { if case .string(let text) = self { text } else { nil } }
  /// The truth value; nil if it is no boolean.
  public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
  /// The number; nil if it is no integer that fits.
  public var int: Int? { if case .number(let text) = self { Int(text) } else { nil } }
  /// The number; nil if it is no number.
  public var double: Double? { if case .number(let text) = self { Double(text) } else { nil } }
  /// The elements; nil if it is no array.
  public var array: [JSONValue]? { if case .array(let elements) = self { elements } else { nil } }
  /// The members; nil if it is no object.
  public var object: [Member]? { if case .object(let members) = self { members } else { nil } }
  /// Bytes of memory that the tree takes, about: 64 for a value and for each member.
  public var memoryBytes: Int {
    switch self {
    case .null, .bool: 64
    case .number(let text), .string(let text): 64 + text.utf8.count
    case .array(let elements): elements.reduce(64) { $0 + $1.memoryBytes }
    case .object(let members): members.reduce(64) { $0 + 64 + $1.key.utf8.count + $1.value.memoryBytes }
    }
  }
  /// Whether it is null.
  public var isNull: Bool { self == .null }
}

extension JSONValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  public init(stringLiteral value: String) { self = .string(value) }
  public init(integerLiteral value: Int) { self = .int(value) }
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  public init(dictionaryLiteral members: (String, JSONValue)...) { self = .object(members.map { Member($0.0, $0.1) }) }
}
