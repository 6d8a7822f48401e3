import PrismProtocol

/// JSON Schema (draft 2020-12) of the configuration files, for editors.
package enum Schema {
  /// `schema`, or a string that takes its value from the environment.
  static func orEnvironment(_ schema: JSONValue) -> JSONValue {
    ["anyOf": [schema, ["type": "string", "pattern": "\\$\\{"]]]
  }

  static func object<Target>(_ table: KeyTable<Target>) -> JSONValue {
    let required = table.keys.filter(\.isRequired).map { JSONValue.string($0.name) }
    let members = properties(table.keys.map { ($0.name, property($0, default: table.defaultText($0))) })
    return object(members, required: required)
  }

  private static func object(_ properties: [JSONValue.Member], required: [JSONValue] = []) -> JSONValue {
    var members: [JSONValue.Member] = [
      .init("type", required.isEmpty ? ["object", "null"] : "object"), .init("properties", .object(properties)),
    ]
    if !required.isEmpty { members.append(.init("required", .array(required))) }
    return .object(members + [.init("additionalProperties", false)])
  }

  /// Dotted names become objects within objects.
  private static func properties(_ keys: [(name: String, schema: JSONValue)]) -> [JSONValue.Member] {
    var members: [JSONValue.Member] = []
    var groups: Set<String> = []
    for (name, schema) in keys {
      guard let dot = name.firstIndex(of: ".") else {
        members.append(.init(name, schema))
        continue
      }
      let group = String(name[..<dot])
      guard groups.insert(group).inserted else { continue }
      let below = keys.filter { $0.name.hasPrefix(group + ".") }
        .map { (name: String($0.name.dropFirst(group.count + 1)), schema: $0.schema) }
      members.append(.init(group, object(properties(below))))
    }
    return members
  }

  private static func property<Target>(_ key: ConfigurationKey<Target>, default text: String) -> JSONValue {
    let unit = key.unit.isEmpty ? "" : " \(key.unit)"
    let description = "\(key.meaning) (\(key.allowed)\(unit); default: \(text))"
    return .object([.init("description", .string(description))] + (key.schema.object ?? []))
  }
}
