public import PrismProtocol

extension LoadedConfiguration {
  /// The effective configuration: `{"daemon":{KEY:VALUE,…},"namespaces":{NAME:{KEY:VALUE,…},…}}` with dotted keys. With
  /// origins each value is `{"value":…,"origin":…}`. Of `keys` only the id and the file are shown.
  public func json(origins: Bool) -> JSONValue {
    let daemon = DaemonKeys.table.members(of: snapshot.daemon) { origins ? self.origins[$0] : nil }
    let namespaces = snapshot.namespaces.sorted { $0.key < $1.key }.map { name, configuration in
      let members = NamespaceKeys.table.members(of: NamespaceDraft(configuration)) {
        origins ? self.origins[name, $0] : nil
      }
      return JSONValue.Member(name.text, .object(members))
    }
    return .object([.init("daemon", .object(daemon)), .init("namespaces", .object(namespaces))])
  }

  /// The same for people, as the files would be written; keys without a value are comments.
  public func text(origins: Bool) -> String {
    var sections = ["# prismd.yaml\n" + DaemonKeys.table.yaml(of: snapshot.daemon) { origins ? self.origins[$0] : nil }]
    for (name, configuration) in snapshot.namespaces.sorted(by: { $0.key < $1.key }) {
      let yaml = NamespaceKeys.table.yaml(of: NamespaceDraft(configuration)) { origins ? self.origins[name, $0] : nil }
      sections.append("# namespaces.d/\(name).yaml\n" + yaml)
    }
    return sections.joined(separator: "\n")
  }
}

extension KeyTable {
  fileprivate func members(of target: Target, origin: (String) -> Origin?) -> [JSONValue.Member] {
    keys.map { key in
      let value = key.show(target)
      guard let origin = origin(key.name) else { return JSONValue.Member(key.name, value) }
      return JSONValue.Member(key.name, ["value": value, "origin": .string(origin.description)])
    }
  }

  /// A line a key; groups indented below their name.
  fileprivate func yaml(of target: Target, origin: (String) -> Origin?) -> String {
    var result = ""
    var group = ""
    for key in keys {
      let parts = key.name.split(separator: ".", maxSplits: 1)
      let isGrouped = parts.count == 2
      if isGrouped && parts[0] != group { result += "\(parts[0]):\n" }
      group = isGrouped ? String(parts[0]) : ""
      let value = key.show(target)
      let name = parts.last ?? ""
      let line = value.isNull ? "# \(name): \(defaultText(key))" : "\(name): \(value.yamlText)"
      result += (isGrouped ? "  " : "") + line + (origin(key.name).map { "  # \($0)".printable } ?? "") + "\n"
    }
    return result
  }
}

extension JSONValue {
  /// JSON is YAML; a dollar is doubled, so that the environment stays out of it.
  fileprivate var yamlText: String { text.replacing("$", with: "$$") }
}
