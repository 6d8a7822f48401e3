import PrismBase
import PrismProtocol

// Forms that protobuf's JSON mapping allows beside the one that protobuf's own library writes.
extension OTLPMessage {
  /// The value with the members' names in lowerCamelCase, without null, ids in lower-case hexadecimal digits, enumerations as
  /// numbers, and 64-bit numbers as strings. Members that are not known stay as they are.
  func normalized(_ value: JSONValue) -> JSONValue {
    guard let members = value.object else { return value }
    return .object(
      members.compactMap { member in
        if member.value.isNull { return nil }
        guard let (name, field) = Self.byName[rawValue][member.key] else { return member }
        guard field.isRepeated else { return .init(name, field.normalized(member.value)) }
        let elements = member.value.array?.filter { !$0.isNull }.map { field.normalized($0) }
        return .init(name, elements.map { .array($0) } ?? member.value)
      })
  }

  /// Fields by both of their names.
  private static let byName: [[String: (name: String, field: OTLPField)]] = allCases.map { message in
    var result: [String: (name: String, field: OTLPField)] = [:]
    for field in message.fields.compactMap({ $0 }) {
      result[field.name] = (field.name, field)
      result[OTLPField.snakeCase(field.name)] = (field.name, field)
    }
    return result
  }
}

extension OTLPField {
  fileprivate var name: String { String(decoding: key.dropFirst().dropLast(2), as: UTF8.self) }

  /// `timeUnixNano` becomes `time_unix_nano`.
  static func snakeCase(_ name: String) -> String {
    name.reduce(into: "") { $0 += $1.isUppercase ? "_" + $1.lowercased() : String($1) }
  }

  /// Whether a key is the field's name in JSON or in protobuf.
  static func isName(_ key: String, _ name: String) -> Bool { key == name || key == snakeCase(name) }

  fileprivate func normalized(_ value: JSONValue) -> JSONValue {
    switch (form, value) {
    case (.message(let message), _): message.normalized(value)
    case (.hexadecimal, .string(let text)): .string(Self.hexadecimal(text))
    case (.varint32, .string(let text)): .number(Int32(text).map { String($0) } ?? Self.enumeration(text) ?? "0")
    case (.signed64, .number(let text)), (.unsigned64, .number(let text)), (.fixed64, .number(let text)),
      (.signedFixed64, .number(let text)):
      .string(Self.whole(text))
    default: value
    }
  }

  /// An id of a trace or a span: OTLP writes hexadecimal digits, protobuf's own mapping base64.
  private static func hexadecimal(_ text: String) -> String {
    if [16, 32].contains(text.utf8.count), Hex.decode(Array(text.utf8)[...]) != nil { return text.lowercased() }
    guard [12, 24].contains(text.utf8.count), let bytes = Base64.decode(Array(text.utf8)) else { return text }
    return Hex.encode(bytes)
  }

  /// `1.5e18` is a whole number, too.
  private static func whole(_ text: String) -> String {
    if UInt64(text) != nil || Int64(text) != nil { return text }
    guard let number = Double(text) else { return text }
    return UInt64(exactly: number).map { String($0) } ?? Int64(exactly: number).map { String($0) } ?? text
  }

  /// The number of an enumeration's name; nil for another text.
  private static func enumeration(_ text: String) -> String? {
    let lists = [
      "SPAN_KIND_": ["UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER"],
      "STATUS_CODE_": ["UNSET", "OK", "ERROR"], "AGGREGATION_TEMPORALITY_": ["UNSPECIFIED", "DELTA", "CUMULATIVE"],
      "SEVERITY_NUMBER_": ["UNSPECIFIED"]
        + ["TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"].flatMap { [$0, "\($0)2", "\($0)3", "\($0)4"] },
    ]
    for (prefix, names) in lists where text.hasPrefix(prefix) {
      return names.firstIndex(of: String(text.dropFirst(prefix.count))).map { String($0) }
    }
    return nil
  }
}
