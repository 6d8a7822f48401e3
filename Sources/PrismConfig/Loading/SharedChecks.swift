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
    let hasUnreadableLimit = checker.faults.contains { $0.key.hasPrefix("limits.") }
    ceilings = hasUnreadableLimit ? .furthest : daemon.limits
  }

  mutating func keepFiles(of checker: Checker) {
    (heldFiles, identities) = (checker.heldFiles, checker.identities)
  }
}
