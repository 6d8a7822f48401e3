import PrismBase
import PrismProtocol

/// A folder of namespace files that a server of remote configuration serves: `NAME.yaml`, with the keys of a namespace's
/// file that may be set remotely (docs/remote-configuration.md). `retired: true` alone takes the namespace away.
public enum RemoteFolder {
  /// The configurations of the files, by name. They are checked without the devices' own files: a device's
  /// `remote.allow` and `limits` may refuse more. Blocks on the disk.
  /// - Throws: every fault of every file.
  public static func read(_ folder: String) throws(ConfigurationFaults) -> [RemoteNamespace] {
    var (faults, result): ([ConfigurationFault], [RemoteNamespace]) = ([], [])
    var files: [NamespaceName: String] = [:]
    for name in try names(in: folder) {
      let file = FilePath.joined(folder, name)
      guard let stem = FilePath.namespaceStem(name) else {
        if let fault = FilePath.fault(inEndingOf: name) {
          faults.append(ConfigurationFault(file: file, line: 1, key: "file", message: fault))
        }
        continue
      }
      if let namespace = NamespaceName(stem), files[namespace] == nil {
        files[namespace] = file
        var checker = Checker(
          file: file, search: FileSearch(credentials: nil, folders: []), ceilings: .furthest, keyRing: KeyRing())
        let (isRetired, keys) = keys(of: file, &checker)
        result.append(RemoteNamespace(name: namespace, isRemoved: isRetired, keys: keys))
        faults += checker.faults
      } else {
        let message =
          NamespaceName(stem).flatMap { files[$0] }.map { "configures what \($0) does already; remove one" }
          ?? "is named \(stem.shownInFault), must be a namespace's name: 1 to 64 of A-Z a-z 0-9 _ -"
        faults.append(ConfigurationFault(file: file, line: 1, key: "file", message: message))
      }
    }
    guard faults.isEmpty else { throw ConfigurationFaults(faults) }
    return result.sorted { $0.name < $1.name }
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

  private static func keys(
    of file: String, _ checker: inout Checker
  ) -> (isRetired: Bool, keys: [JSONValue.Member]) {
    let bytes: [UInt8]
    do throws(FileFault) {
      bytes = try FileReading.read(file, bytesMax: YAMLParser.fileBytesMax).bytes
    } catch {
      checker.fault(1, "file", "cannot be read: \(error.reason)")
      return (false, [])
    }
    let (root, faults) = YAMLParser.parse(bytes)
    for fault in faults { checker.fault(fault.line, "YAML", fault.message) }
    guard let root, !root.isNull else { return (false, []) }
    guard let entries = checker.entries(root, "file", mustBe: "a map of keys") else { return (false, []) }
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
