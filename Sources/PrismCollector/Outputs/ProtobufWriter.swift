import PrismBase
import PrismProtocol

/// Writes OTLP's JSON as protobuf, by the tables of its messages. A member that the tables do not have, or whose value has
/// another form, is left out, as a reader of protobuf does with fields that it does not know.
struct ProtobufWriter {
  private(set) var bytes: [UInt8] = []

  /// Appends the fields of a message, without its length.
  mutating func append(_ json: JSONValue, as message: OTLPMessage) {
    for member in json.object ?? [] {
      guard let field = message.fields.lazy.compactMap({ $0 }).first(where: { $0.isNamed(member.key) })
      else { continue }
      if field.isRepeated { append(member.value.array ?? [], field) } else { append(member.value, field) }
    }
  }

  /// Numbers of a list are packed, as proto3 has them.
  private mutating func append(_ elements: [JSONValue], _ field: OTLPField) {
    switch field.form {
    case .message, .string, .base64, .hexadecimal: for element in elements { append(element, field) }
    default:
      var packed = ProtobufWriter()
      for element in elements { packed.number(element, field.form) }
      if !packed.bytes.isEmpty { append(packed.bytes, field.number) }
    }
  }

  private mutating func append(_ value: JSONValue, _ field: OTLPField) {
    switch field.form {
    case .message(let message):
      guard value.object != nil else { return }
      let start = bytes.count
      append(value, as: message)
      var head: [UInt8] = []
      head.append(varint: UInt64(field.number << 3 | 2))
      head.append(varint: UInt64(bytes.count - start))
      bytes.insert(contentsOf: head, at: start)
    case .string: value.string.map { append($0.utf8, field.number) }
    case .base64: value.string.flatMap { Base64.decode($0.utf8) }.map { append($0, field.number) }
    case .hexadecimal: value.string.flatMap { Hex.decode($0) }.map { append($0, field.number) }
    default:
      var number = ProtobufWriter()
      guard let wire = number.number(value, field.form) else { return }
      varint(UInt64(field.number << 3 | wire))
      bytes += number.bytes
    }
  }

  /// Appends bytes with their length, as the field of this number.
  mutating func append(_ content: some Collection<UInt8>, _ number: Int) {
    varint(UInt64(number << 3 | 2))
    varint(UInt64(content.count))
    bytes += content
  }

  // MARK: Numbers

  /// Appends a number without its tag. - Returns: the type of the wire; nil: the value is no such number.
  @discardableResult
  private mutating func number(_ value: JSONValue, _ form: OTLPField.Form) -> Int? {
    switch form {
    case .bool:
      guard let flag = value.bool else { return nil }
      varint(flag ? 1 : 0)
      return 0
    case .double:
      guard let number = Self.double(value) else { return nil }
      fixed(number.bitPattern, 8)
      return 1
    default:
      guard let text = value.string ?? value.numberText else { return nil }
      if let number = Int64(text) { return integer(UInt64(bitPattern: number), form) }
      return UInt64(text).flatMap { integer($0, form) }
    }
  }

  private mutating func integer(_ number: UInt64, _ form: OTLPField.Form) -> Int? {
    switch form {
    case .varint32, .unsigned32, .signed64, .unsigned64: varint(number)
    case .zigzag32: varint(number << 1 ^ UInt64(bitPattern: Int64(bitPattern: number) >> 63))
    case .fixed32:
      fixed(number, 4)
      return 5
    case .fixed64, .signedFixed64:
      fixed(number, 8)
      return 1
    default: return nil
    }
    return 0
  }

  /// Protobuf's JSON has words for what is no number.
  private static func double(_ value: JSONValue) -> Double? {
    switch value.string {
    case "NaN": .nan
    case "Infinity": .infinity
    case "-Infinity": -.infinity
    case let text: (text ?? value.numberText).flatMap { Double($0) }
    }
  }

  private mutating func varint(_ number: UInt64) { bytes.append(varint: number) }

  private mutating func fixed(_ number: UInt64, _ count: Int) {
    for index in 0..<count { bytes.append(UInt8(truncatingIfNeeded: number >> UInt64(8 * index))) }
  }
}

extension OTLPField {
  /// `key` has quotes and a colon around the name.
  fileprivate func isNamed(_ name: String) -> Bool {
    key.count == name.utf8.count + 3 && key.dropFirst().starts(with: name.utf8)
  }
}

extension JSONValue {
  var numberText: String? { if case .number(let text) = self { text } else { nil } }
}
