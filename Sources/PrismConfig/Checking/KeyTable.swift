import PrismBase
import PrismProtocol

/// The keys of one kind of map, and what a map without any of them says.
package struct KeyTable<Target: Sendable>: Sendable {
  /// The keys in the order of the documentation.
  package let keys: [ConfigurationKey<Target>]
  /// A target that no key has changed.
  package let defaults: Target
  private let byName: [String: Int]
  /// `tls` of `tls.caFile`.
  private let groups: Set<String>
  /// Keys of another file, and where they belong.
  private let elsewhere: @Sendable (String) -> String?

  init(
    _ keys: [ConfigurationKey<Target>], defaults: Target,
    elsewhere: @escaping @Sendable (String) -> String? = { _ in nil }
  ) {
    (self.keys, self.defaults, self.elsewhere) = (keys, defaults, elsewhere)
    byName = Dictionary(uniqueKeysWithValues: keys.enumerated().map { ($1.name, $0) })
    groups = Set(keys.compactMap { key in key.name.firstIndex(of: ".").map { String(key.name[..<$0]) } })
  }

  package subscript(name: String) -> ConfigurationKey<Target>? { byName[name].map { keys[$0] } }

  func isGroup(_ name: String) -> Bool { groups.contains(name) }

  /// The value of a target without any key in its file, as documentation writes it.
  package func defaultText(_ key: ConfigurationKey<Target>) -> String {
    if let note = key.defaultNote { return note }
    let value = key.show(defaults)
    return value.string ?? value.text
  }

  /// Applies the keys of `node` to `target`. Reports every fault to `checker`; a key with a fault leaves `target` as it
  /// is.
  /// - Returns: the lines of the keys that were given.
  func read(_ node: YAMLNode, into target: inout Target, _ checker: inout Checker) -> [String: Int] {
    let lines = read(node, group: "", into: &target, &checker)
    for key in keys where key.isRequired && lines[key.name] == nil {
      checker.fault(node.line, key.name, "is missing, must be \(key.allowed)")
    }
    return lines
  }

  private func read(
    _ node: YAMLNode, group: String, into target: inout Target, _ checker: inout Checker
  ) -> [String: Int] {
    let place = group.isEmpty ? "file" : String(group.dropLast())
    if group.isEmpty, case .scalar(let scalar) = node.value, scalar.kind != .null {
      // The content is not shown: it may be a key or a token, if the path was mistaken.
      checker.fault(node.line, place, "is one value, must be a map of keys")
      return [:]
    }
    guard let entries = checker.entries(node, place, mustBe: "a map of keys") else { return [:] }
    var lines: [String: Int] = [:]
    for entry in entries {
      let name = group + entry.key
      if !entry.key.contains("."), let key = self[name] {
        key.read(entry.nodeAtKey, &target, &checker)
        lines[name] = entry.line
      } else if groups.contains(name) {
        lines.merge(read(entry.nodeAtKey, group: name + ".", into: &target, &checker)) { $1 }
      } else {
        checker.fault(entry.line, name.shownInFault, unknown(name, group: group))
      }
    }
    return lines
  }

  /// Why a key is refused, and which was probably meant.
  func unknown(_ name: String, group: String = "") -> String {
    if let place = elsewhere(name) { return "belongs in \(place)" }
    if let dot = name.firstIndex(of: "."), group.isEmpty, self[name] != nil {
      return "is unknown as one word; write \(name[..<dot]): and below it \(name[name.index(after: dot)...]):"
    }
    let names = keys.map(\.name) + groups
    if let nearest = NearestName.of(name, among: names) { return "is unknown; did you mean \(nearest)?" }
    let word = name.dropFirst(group.count)
    if let homonym = keys.first(where: { $0.name.hasSuffix(".\(word)") }) {
      return "is unknown; did you mean \(homonym.name)?"
    }
    let siblings = group.isEmpty ? keys.map(\.name) : names.filter { $0.hasPrefix(group) }
    return siblings.count <= 8 ? "is unknown; known are \(siblings.joined(separator: ", "))" : "is unknown"
  }
}

extension YAMLEntry {
  /// Faults of a list or a map are reported at its key; libyaml would report them at the first element.
  fileprivate var nodeAtKey: YAMLNode {
    switch node.value {
    case .sequence, .mapping: YAMLNode(line: line, node.value)
    case .scalar, .refused: node
    }
  }
}
