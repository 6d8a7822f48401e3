import PrismProtocol

/// Just as much of JSON Schema (draft 2020-12) as the shipped schemas use. A keyword that it doesn't know is a failure,
/// so that no keyword is shipped untested.
struct SchemaValidator {
  static func accepts(_ value: JSONValue, _ schema: JSONValue) throws -> Bool {
    for member in schema.object ?? [] where try !accepts(value, member, within: schema) { return false }
    return true
  }

  private static func accepts(_ value: JSONValue, _ keyword: JSONValue.Member, within schema: JSONValue) throws -> Bool
  {
    let rule = keyword.value
    switch keyword.key {
    case "$schema", "$id", "title", "description": return true
    case "type": return (rule.array ?? [rule]).contains { isOf(type: $0.string ?? "", value) }
    case "enum": return rule.array!.contains(value)
    case "anyOf": return try rule.array!.contains { try accepts(value, $0) }
    case "minimum": return value.int.map { $0 >= rule.int! } ?? true
    case "maximum": return value.int.map { $0 <= rule.int! } ?? true
    case "minItems": return value.array.map { $0.count >= rule.int! } ?? true
    case "maxItems": return value.array.map { $0.count <= rule.int! } ?? true
    case "pattern": return try value.string.map { try $0.contains(Regex(rule.string!)) } ?? true
    case "required": return value.object.map { _ in rule.array!.allSatisfy { value[$0.string!] != nil } } ?? true
    case "items": return try (value.array ?? []).allSatisfy { try accepts($0, rule) }
    case "properties":
      return try rule.object!.allSatisfy { property in
        try value[property.key].map { try accepts($0, property.value) } ?? true
      }
    case "additionalProperties":
      let others = (value.object ?? []).filter { schema["properties"]?[$0.key] == nil }
      return try others.allSatisfy { try rule == false ? false : accepts($0.value, rule) }
    default: throw UnknownKeyword(name: keyword.key)
    }
  }

  private static func isOf(type: String, _ value: JSONValue) -> Bool {
    switch value {
    case .null: type == "null"
    case .bool: type == "boolean"
    case .number: type == "number" || (type == "integer" && value.int != nil)
    case .string: type == "string"
    case .array: type == "array"
    case .object: type == "object"
    }
  }

  struct UnknownKeyword: Error { let name: String }
}
