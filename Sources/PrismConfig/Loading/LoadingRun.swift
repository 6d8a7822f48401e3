import PrismBase
import PrismProtocol

/// One pass over all files. A key with a fault keeps its default and the pass continues, so that all faults are found
/// at once.
struct LoadingRun {
  static let namespaceFilesMax = 10_000

  let path: String
  let environment: [String: String]
  /// As faults name it, and from the root.
  let folder: String, absoluteFolder: String

  var daemon = DaemonConfiguration()
  var origins = Origins()
  var drafts: [NamespaceName: NamespaceDraft] = [:]
  var namespaces: [NamespaceName: NamespaceConfiguration] = [:]
  var retired: Set<NamespaceName> = []
  var files: [String] = []
  var faults: [ConfigurationFault] = []
  private var shared: SharedChecks

  init(path: String, environment: [String: String], identityCheck: ClientIdentityCheck?) {
    (self.path, self.environment) = (path, environment)
    shared = SharedChecks(identityCheck: identityCheck)
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
    if daemon.remoteURL == nil { daemon.remote = nil }
    shared.take(daemon, checker)
    close(checker)
  }

  private func checkSockets(_ lines: [String: Int], _ checker: inout Checker) {
    guard FilePath.plain(daemon.ingest.socket) == FilePath.plain(daemon.control.socket) else { return }
    let (line, key) =
      lines["control.socket"].map { ($0, "control.socket") } ?? (lines["ingest.socket"] ?? 1, "ingest.socket")
    checker.fault(line, key, "is \(daemon.control.socket.shownInFault), the path of both sockets; give each its own")
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
    return shared.checker(of: file, search)
  }

  private mutating func close(_ checker: Checker) {
    faults += checker.sortedFaults
    files += checker.filesRead
    shared.keepFiles(of: checker)
  }

  /// The namespaces' files by name. Other files in the folder are ignored; hidden ones belong to editors.
  private mutating func namespaceFiles() -> [(NamespaceName, String)] {
    var result: [NamespaceName: String] = [:]
    let names: [String]
    do throws(FileFault) {
      names = try FileReading.names(in: namespaceFolder) ?? []
    } catch {
      refuse(namespaceFolder, "cannot be read: \(error.reason)")
      return []
    }
    for name in names where !name.hasPrefix(".") {
      let file = FilePath.joined(namespaceFolder, name)
      guard let stem = FilePath.namespaceStem(name) else {
        if let fault = FilePath.fault(inEndingOf: name) { refuse(file, fault) }
        continue
      }
      guard let namespace = NamespaceName(stem) else {
        refuse(file, "is named \(stem.shownInFault), must be a namespace's name: 1 to 64 of A-Z a-z 0-9 _ -")
        continue
      }
      if let other = result[namespace] {
        refuse(file, "configures \(stem), which \(other) does already; remove one")
      } else {
        result[namespace] = file
      }
    }
    guard result.count <= Self.namespaceFilesMax else {
      refuse(namespaceFolder, "has \(result.count) namespaces, must be at most \(Self.namespaceFilesMax)")
      return []
    }
    return result.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
  }

  private mutating func refuse(_ file: String, _ message: String) {
    faults.append(ConfigurationFault(file: file, line: 1, key: "file", message: message))
  }
}

/// Facts that the checkers of all files of one pass share: files that were read, and the daemon's bounds for namespaces.
struct SharedChecks {
  private let identityCheck: ClientIdentityCheck?
  private var heldFiles: [String: HeldFile] = [:]
  private var identities: [[String]: String] = [:]
  private var keyRing = KeyRing()
  private var ceilings = DaemonConfiguration.Ceilings()
  private var permissions = Permissions()

  init(identityCheck: ClientIdentityCheck?) { self.identityCheck = identityCheck }

  func checker(of file: String, _ search: FileSearch) -> Checker {
    var checker = Checker(file: file, search: search, ceilings: ceilings, keyRing: keyRing)
    (checker.heldFiles, checker.identityCheck, checker.identities) = (heldFiles, identityCheck, identities)
    checker.permissions = permissions
    return checker
  }

  /// Takes the keys and the bounds of the daemon's file. A namespace is not blamed for one that could not be read.
  mutating func take(_ daemon: DaemonConfiguration, _ checker: Checker) {
    keyRing = checker.keyRing
    keyRing.keys = daemon.keys
    let isUnreadable = checker.faults.contains { $0.key == "file" || $0.key == "YAML" }
    permissions.plain = daemon.allowPlain || checker.hasFault(at: "allowPlain") || isUnreadable
    permissions.commands = !daemon.commands.allow.isEmpty
    permissions.tags = daemon.deviceTags != nil
    let hasUnreadableLimit = checker.faults.contains { $0.key.hasPrefix("limits.") }
    ceilings = hasUnreadableLimit ? .furthest : daemon.limits
  }

  mutating func keepFiles(of checker: Checker) {
    (heldFiles, identities) = (checker.heldFiles, checker.identities)
  }
}
