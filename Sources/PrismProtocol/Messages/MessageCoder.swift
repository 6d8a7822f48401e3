/// Writes the properties of a message, and nothing that is deeper: each is a `ControlValue`.
final class MessageWriter: Encoder {
  let leavesOut: (String) -> Bool
  var members: [JSONValue.Member] = []
  let codingPath: [any CodingKey] = []
  let userInfo: [CodingUserInfoKey: Any] = [:]

  init(leavesOut: @escaping (String) -> Bool) { self.leavesOut = leavesOut }

  func container<Key>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> { .init(Members(writer: self)) }
  func unkeyedContainer() -> any UnkeyedEncodingContainer { preconditionFailure("a message is an object") }
  func singleValueContainer() -> any SingleValueEncodingContainer { preconditionFailure("a message is an object") }

  private struct Members<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let writer: MessageWriter
    var codingPath: [any CodingKey] { writer.codingPath }

    func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
      guard let value = value as? any ControlValue else {
        throw EncodingError.invalidValue(value, .init(codingPath: [key], debugDescription: "no ControlValue"))
      }
      writer.members.append(.init(key.stringValue, value.controlJSON))
    }

    func encodeIfPresent<Value: Encodable>(_ value: Value?, forKey key: Key) throws { try encode(optional: value, key) }
    // The standard library has its own for these, which leave nil out.
    func encodeIfPresent(_ value: String?, forKey key: Key) throws { try encode(optional: value, key) }
    func encodeIfPresent(_ value: Int?, forKey key: Key) throws { try encode(optional: value, key) }
    func encodeIfPresent(_ value: Int64?, forKey key: Key) throws { try encode(optional: value, key) }
    func encodeIfPresent(_ value: Bool?, forKey key: Key) throws { try encode(optional: value, key) }

    private func encode(optional value: (some Encodable)?, _ key: Key) throws {
      if let value { return try encode(value, forKey: key) }
      if !writer.leavesOut(key.stringValue) { encodeNil(forKey: key) }
    }

    func encodeNil(forKey key: Key) { writer.members.append(.init(key.stringValue, .null)) }
    func nestedContainer<Inner>(keyedBy type: Inner.Type, forKey key: Key) -> KeyedEncodingContainer<Inner> {
      writer.container(keyedBy: type)
    }
    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer { writer.unkeyedContainer() }
    func superEncoder() -> any Encoder { writer }
    func superEncoder(forKey key: Key) -> any Encoder { writer }
  }
}

/// Reads the properties of a message; one that is missing or of another type has its default.
struct MessageReader: Decoder {
  let json: JSONValue
  /// The message as `init()` makes it.
  let defaults: () -> JSONValue
  let codingPath: [any CodingKey] = []
  let userInfo: [CodingUserInfoKey: Any] = [:]

  func container<Key>(keyedBy type: Key.Type) -> KeyedDecodingContainer<Key> { .init(Members(reader: self)) }
  func unkeyedContainer() throws -> any UnkeyedDecodingContainer { throw noObject }
  func singleValueContainer() throws -> any SingleValueDecodingContainer { throw noObject }

  private var noObject: DecodingError {
    .dataCorrupted(.init(codingPath: codingPath, debugDescription: "a message is an object"))
  }

  private struct Members<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let reader: MessageReader
    var codingPath: [any CodingKey] { reader.codingPath }
    var allKeys: [Key] { (reader.json.object ?? []).compactMap { Key(stringValue: $0.key) } }

    func contains(_ key: Key) -> Bool { reader.json[key.stringValue] != nil }
    func decodeNil(forKey key: Key) -> Bool { reader.json[key.stringValue]?.isNull ?? true }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
      guard let value: Value = value(reader.json, key) ?? value(reader.defaults(), key) else { throw reader.noObject }
      return value
    }

    func decodeIfPresent<Value: Decodable>(_: Value.Type, forKey key: Key) -> Value? { value(reader.json, key) }
    // The standard library has its own for these, which fail at another type.
    func decodeIfPresent(_: String.Type, forKey key: Key) -> String? { value(reader.json, key) }
    func decodeIfPresent(_: Int.Type, forKey key: Key) -> Int? { value(reader.json, key) }
    func decodeIfPresent(_: Int64.Type, forKey key: Key) -> Int64? { value(reader.json, key) }
    func decodeIfPresent(_: Bool.Type, forKey key: Key) -> Bool? { value(reader.json, key) }

    private func value<Value>(_ json: JSONValue, _ key: Key) -> Value? {
      guard let json = json[key.stringValue], !json.isNull, let type = Value.self as? any ControlValue.Type else {
        return nil
      }
      return type.init(controlJSON: json) as? Value
    }

    func nestedContainer<Inner>(keyedBy: Inner.Type, forKey: Key) throws -> KeyedDecodingContainer<Inner> {
      throw reader.noObject
    }
    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer { throw reader.noObject }
    func superDecoder() throws -> any Decoder { reader }
    func superDecoder(forKey key: Key) throws -> any Decoder { reader }
  }
}
