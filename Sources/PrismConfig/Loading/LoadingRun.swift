import PrismBase
import PrismProtocol

/// One pass over all files. A key with a fault keeps its default and the pass continues, so that all faults are found
/// at once.
struct LoadingRun {
  static let namespaceFilesMax = 10_000

  private let path: String
  private let environment: [String: String]
  /// As faults name it, and from the root.
  private let folder: String, absoluteFolder: String

  private var daemon = DaemonConfiguration()
  private var origins = Origins()
  private var drafts: [NamespaceName: NamespaceDraft] = [:]
  private var namespaces: [NamespaceName: NamespaceConfiguration] = [:]
  private var retired: Set<NamespaceName> = []
  private(set) var files: [String] = []
  private(set) var faults: [ConfigurationFault] = []
  /// Knows what the files so far said.
  private var shared = Checker()

  init(path: String, environment: [String: String], identityCheck: ClientIdentityCheck?) {
    (self.path, self.environment) = (path, environment)
    shared.identityCheck = identityCheck
    folder = FilePath.folder(of: path)
    absoluteFolder = FilePath.absolute(folder)
  }

  private var namespaceFolder: String { FilePath.joined(folder, "namespaces.d") }

  var result: LoadedConfiguration {
    LoadedConfiguration(
      snapshot: Snapshot(generation: 1, daemon: daemon, namespaces: namespaces), origins: origins, files: files,
      namespaceFolder: FilePath.absolute(namespaceFolder), path: path, drafts: drafts, retired: retired)
  }

  mutating func loadDaemon() {
    var checker = checker(of: path)
    if let root = checker.tree(environment) {
      let lines = DaemonKeys.table.read(root, into: &daemon, &checker)
      checkRemoteCertificate(lines, &checker)
      checkSockets(lines, &checker)
      if lines["remote.allow"] == nil, daemon.remoteValues.publicKey != nil {
        daemon.remoteValues.allow = NamespaceKeys.remoteSigned
      }
      checker.checkIdentity(daemon.remoteValues.tls, keyLine: lines["remote.keyFile"] ?? 1, "remote.keyFile")
      origins.daemon = lines.mapValues { .file(path, line: $0) }
    } else {
      checker.keyRing.isComplete = false
      daemon.limits = .furthest
    }
    daemon.commands.publicKey = daemon.remoteValues.publicKey
    close(checker)
    takeBounds(checker)
  }

  /// A namespace is not blamed for a bound that could not be read.
  private mutating func takeBounds(_ checker: Checker) {
    shared.keyRing = checker.keyRing
    shared.take(daemon)
    if checker.hasFault(at: "allowPlain") || checker.isUnreadable { shared.permissions.plain = true }
    if checker.faults.contains(where: { $0.key.hasPrefix("limits.") }) { shared.ceilings = .furthest }
  }

  private func checkSockets(_ lines: [String: Int], _ checker: inout Checker) {
    for (place, other) in ListeningPlace.taken(of: daemon.listeningPlaces) {
      let (given, beside) = lines[place.key] == nil ? (other, place) : (place, other)
      checker.fault(lines[given.key] ?? 1, given.key, given.fault(beside: beside))
    }
  }

  private func checkRemoteCertificate(_ lines: [String: Int], _ checker: inout Checker) {
    for (given, missing) in [("remote.certFile", "remote.keyFile"), ("remote.keyFile", "remote.certFile")] {
      guard let line = lines[given], lines[missing] == nil else { continue }
      checker.fault(line, missing, "is missing; a client certificate needs it beside \(given)")
    }
  }

  mutating func loadNamespaces() {
    for (name, file) in namespaceFiles() { loadNamespace(name, file) }
    if namespaces[.prism] == nil, drafts[.prism] == nil {
      var checker = checker(of: path)
      let draft = NamespaceDraft(defaultsOf: .prism)
      drafts[.prism] = draft
      origins.namespaces[.prism] = draft.origins
      namespaces[.prism] = draft.settled(lines: [:], &checker)
    }
  }

  private mutating func loadNamespace(_ name: NamespaceName, _ file: String) {
    var checker = checker(of: file)
    defer { close(checker) }
    var draft = NamespaceDraft(defaultsOf: name)
    draft.hasFile = true
    defer { drafts[name] = draft.isRetired ? nil : draft }
    guard let root = checker.tree(environment) else { return }
    let lines = NamespaceKeys.table.read(root, into: &draft, &checker)
    if draft.isRetired {
      retired.insert(name)
      guard name == .prism else { return }
      return checker.fault(lines["retired"] ?? 1, "retired", "is true, but prism is always configured; remove the key")
    }
    draft.origins = lines.mapValues { .file(file, line: $0) }
    origins.namespaces[name] = draft.origins
    // An empty file has no keys, but a first line.
    namespaces[name] = draft.settled(lines: lines.isEmpty ? ["": 1] : lines, &checker)
  }

  private func checker(of file: String) -> Checker {
    let own = FilePath.absolute(FilePath.folder(of: file))
    let search = FileSearch(
      credentials: environment["CREDENTIALS_DIRECTORY"].flatMap { $0.isEmpty ? nil : $0 },
      folders: own == absoluteFolder ? [own] : [absoluteFolder, own])
    return shared.next(file, search)
  }

  private mutating func close(_ checker: Checker) {
    faults += checker.sortedFaults
    files += checker.filesRead
    (shared.heldFiles, shared.identities) = (checker.heldFiles, checker.identities)
  }

  private mutating func namespaceFiles() -> [(NamespaceName, String)] {
    let names: [String]
    do throws(FileFault) {
      names = try FileReading.names(in: namespaceFolder) ?? []
    } catch {
      refuse(namespaceFolder, "cannot be read: \(error.reason)")
      return []
    }
    let found = NamespaceFileNames(names, in: namespaceFolder) { stem, other in
      "configures \(stem), which \(other) does already; remove one"
    }
    faults += found.faults
    guard found.files.count <= Self.namespaceFilesMax else {
      refuse(namespaceFolder, "has \(found.files.count) namespaces, must be at most \(Self.namespaceFilesMax)")
      return []
    }
    return found.files.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  private mutating func refuse(_ file: String, _ message: String) {
    faults.append(ConfigurationFault(file: file, line: 1, key: "file", message: message))
  }
}

/// Reads the daemon's file and the namespaces' beside it (docs/configuration.md, "How a file is read").
public struct ConfigurationLoader: Sendable {
  private let path: String
  private let environment: [String: String]
  private let identityCheck: ClientIdentityCheck?

  /// - Parameters:
  ///   - path: of the daemon's own file.
  ///   - environment: for `${NAME}`, and `CREDENTIALS_DIRECTORY`.
  ///   - identityCheck: nil leaves open whether client certificates and their keys belong together.
  public init(path: String, environment: [String: String], identityCheck: ClientIdentityCheck?) {
    (self.path, self.environment, self.identityCheck) = (path, environment, identityCheck)
  }

  /// Reads everything, and starts nothing. Blocks: on the disk, and on the system's users and groups.
  /// - Throws: every fault of every file.
  public func load() throws(ConfigurationFaults) -> LoadedConfiguration {
    var run = LoadingRun(path: path, environment: environment, identityCheck: identityCheck)
    run.loadDaemon()
    run.loadNamespaces()
    guard run.faults.isEmpty else { throw ConfigurationFaults(run.faults, files: run.files) }
    return run.result
  }
}

extension Checker {
  /// The file's values with the environment put in; nil when there is nothing to go on with.
  mutating func tree(_ environment: [String: String]) -> YAMLNode? {
    guard let root = tree() else { return nil }
    var substitution = EnvironmentText(environment: environment)
    let resolved = substitution.resolved(root)
    for (line, key, message) in substitution.faults { fault(line, key, message) }
    return resolved
  }

  /// The file's values as they were written; nil when there is nothing to go on with.
  mutating func tree() -> YAMLNode? {
    let bytes: [UInt8]
    filesRead.append(FilePath.absolute(file))
    do throws(FileFault) {
      bytes = try FileReading.read(file, bytesMax: YAMLParser.fileBytesMax).bytes
    } catch {
      fault(1, "file", "cannot be read: \(error.reason)")
      return nil
    }
    let (root, parseFaults) = YAMLParser.parse(bytes)
    for parseFault in parseFaults { fault(parseFault.line, "YAML", parseFault.message) }
    return root ?? (parseFaults.isEmpty ? YAMLNode(line: 1, .mapping([])) : nil)
  }

  /// By line; those of one line as they were found.
  var sortedFaults: [ConfigurationFault] {
    faults.enumerated().sorted { ($0.element.line, $0.offset) < ($1.element.line, $1.offset) }.map(\.element)
  }

  /// Whether nothing is known of the file's keys.
  var isUnreadable: Bool { faults.contains { ["file", "YAML"].contains($0.key) } }
}
