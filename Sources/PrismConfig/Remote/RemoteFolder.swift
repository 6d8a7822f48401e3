import PrismProtocol

/// A folder of namespace files that a server of remote configuration serves: `NAME.yaml`, with the keys of a namespace's
/// file that may be set remotely (docs/remote-configuration.md). `retired: true` alone takes the namespace away.
public enum RemoteFolder {
  /// The configurations of the files, by name. They are checked without the devices' own files: a device's
  /// `remote.allow` and `limits` may refuse more. Blocks on the disk.
  /// - Throws: every fault of every file.
  public static func read(_ folder: String) throws(ConfigurationFaults) -> [RemoteNamespace] {
    let found = NamespaceFileNames(try names(in: folder), in: folder) { _, other in
      "configures what \(other) does already; remove one"
    }
    var (faults, result): ([ConfigurationFault], [RemoteNamespace]) = (found.faults, [])
    for (name, file) in found.files.sorted(by: { $0.key < $1.key }) {
      var checker = Checker().next(file)
      checker.ceilings = .furthest
      let (isRetired, keys) = keys(&checker)
      result.append(RemoteNamespace(name: name, isRemoved: isRetired, keys: keys))
      faults += checker.faults
    }
    guard faults.isEmpty else { throw ConfigurationFaults(faults) }
    return result
  }

  /// Hidden ones are an editor's.
  private static func names(in folder: String) throws(ConfigurationFaults) -> [String] {
    var problem = "there is no such folder"
    do throws(FileFault) {
      if let names = try FileReading.names(in: folder)?.filter({ !$0.hasPrefix(".") }) {
        if names.count <= RemoteDocument.namespacesMax { return names }
        problem = "has \(names.count) files, must have at most \(RemoteDocument.namespacesMax)"
      }
    } catch { problem = "cannot be read: \(error.reason)" }
    throw ConfigurationFaults([ConfigurationFault(file: folder, line: 1, key: "file", message: problem)])
  }

  private static func keys(_ checker: inout Checker) -> (isRetired: Bool, keys: [JSONValue.Member]) {
    guard let root = checker.tree(), let entries = checker.entries(root, "file", mustBe: "a map of keys") else {
      return (false, [])
    }
    if let retired = entries.first(where: { $0.key == "retired" }) {
      guard entries.count == 1, retired.node.json == .bool(true) else {
        checker.fault(
          retired.line, "retired", "must be true, and the only key: the namespace is taken away from all devices")
        return (false, [])
      }
      return (true, [])
    }
    let granted = entries.filter { entry in
      guard let fault = LoadedConfiguration.fault(in: entry.key, allowed: NamespaceKeys.remoteListable) else {
        return true
      }
      checker.fault(entry.line, entry.key.shownInFault, fault)
      return false
    }
    var draft = NamespaceDraft(defaultsOf: .prism)
    _ = NamespaceKeys.table.read(YAMLNode(line: root.line, .mapping(granted)), into: &draft, &checker)
    return (false, granted.map { JSONValue.Member($0.key, $0.node.json) })
  }
}

extension YAMLNode {
  /// The same value, as remote configuration has it. A number that JSON would write otherwise (`01.5`) stays its text.
  fileprivate var json: JSONValue {
    switch value {
    case .refused: .null
    case .sequence(let nodes): .array(nodes.map(\.json))
    case .mapping(let entries): .object(entries.map { JSONValue.Member($0.key, $0.node.json) })
    case .scalar(let scalar):
      switch scalar.kind {
      case .null: .null
      case .bool: .bool(scalar.text.lowercased() == "true")
      case .string: .string(scalar.text)
      case .number: (try? JSONValue(parsing: scalar.text)) ?? .string(scalar.text)
      }
    }
  }
}
