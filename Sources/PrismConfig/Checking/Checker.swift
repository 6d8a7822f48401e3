import PrismProtocol

/// The rules for the values of one file, and the faults that were found in it.
package struct Checker: Sendable {
  /// As faults name it.
  var file = ""
  /// Where the values that are being read stand: `monitorList[0].`, or "" at the top.
  var place = ""
  var search = FileSearch(credentials: nil, folders: [])
  var ceilings = DaemonConfiguration.Ceilings()
  var keyRing = KeyRing()
  /// Permissions of the daemon's file for namespaces.
  var permissions = Permissions()
  var faults: [ConfigurationFault] = []
  /// Read on the way, as absolute paths: a change of one is a change of the configuration.
  var filesRead: [String] = []
  /// By path, over all files of one pass.
  var heldFiles: [String: HeldFile] = [:]
  /// nil: certificates and keys are taken as they are.
  var identityCheck: ClientIdentityCheck?
  /// nil: the file is not a collector's, or is looked at without the libraries.
  var collector: CollectorChecks?
  /// The result for a certificate and its key, by their paths, over all files of one pass; "" if they are in order.
  var identities: [[String]: String] = [:]

  /// The checker of the next file of a pass: it knows what the pass has found out so far.
  func next(_ file: String, _ search: FileSearch = FileSearch(credentials: nil, folders: [])) -> Checker {
    var next = self
    (next.file, next.search, next.faults, next.filesRead) = (file, search, [], [])
    return next
  }

  /// Takes the keys and the bounds of a daemon's file for its namespaces.
  mutating func take(_ daemon: DaemonConfiguration) {
    (keyRing.keys, ceilings) = (daemon.keys, daemon.limits)
    permissions = Permissions(
      plain: daemon.allowPlain, commands: daemon.commands.isOn, tags: daemon.deviceTags != nil,
      askInterval: daemon.commands.askTypes.isEmpty ? nil : daemon.commands.askInterval)
  }

  mutating func fault(_ line: Int, _ key: String, _ message: String) {
    faults.append(ConfigurationFault(file: file, line: line, key: place + key, message: message))
  }

  func hasFault(at key: String) -> Bool { faults.contains { $0.key == place + key } }

  /// "is FOUND, must be ALLOWED". Of a value that was refused before nothing more is said.
  mutating func refuse(_ node: YAMLNode, _ key: String, mustBe allowed: String) {
    if case .refused = node.value { return }
    fault(node.line, key, "is \(node.shown), must be \(allowed)")
  }

  mutating func scalar(_ node: YAMLNode, _ key: String, mustBe allowed: String) -> YAMLScalar? {
    guard case .scalar(let scalar) = node.value else {
      refuse(node, key, mustBe: allowed)
      return nil
    }
    guard scalar.kind != .null else {
      fault(node.line, key, "has no value, must be \(allowed); leave the key out for its default")
      return nil
    }
    return scalar
  }

  /// A number is taken for a string as it was written; a boolean isn't, for it is more likely a mistake.
  mutating func text(_ node: YAMLNode, _ key: String, mustBe allowed: String) -> String? {
    guard let scalar = scalar(node, key, mustBe: allowed) else { return nil }
    guard scalar.kind != .bool else {
      fault(node.line, key, "is \(scalar.text), a boolean, must be \(allowed); write it in quotes")
      return nil
    }
    return scalar.text
  }

  /// The entries of a map. A key without a value is an empty map: all keys below it are commented out.
  mutating func entries(_ node: YAMLNode, _ key: String, mustBe allowed: String) -> [YAMLEntry]? {
    if node.isNull { return [] }
    guard case .mapping(let entries) = node.value else {
      refuse(node, key, mustBe: allowed)
      return nil
    }
    return entries
  }

  /// Each pair is looked at once: thousands of namespaces may have the same.
  mutating func checkIdentity(_ tls: TLSFiles, keyLine: Int, _ key: String) {
    guard let certificate = tls.certFile, let privateKey = tls.keyFile, let identityCheck else { return }
    let pair = [certificate.path, privateKey.path]
    let known = identities[pair] ?? identityCheck(certificate.content.bytes, privateKey.content.bytes) ?? ""
    identities[pair] = known
    guard !known.isEmpty else { return }
    let paths = (privateKey.path.shownAtItsEnd, certificate.path.shownAtItsEnd)
    fault(keyLine, key, "is \(paths.0) beside the certificate \(paths.1): \(known); give two that belong together")
  }
}

extension String {
  /// The end of a path says more than its beginning.
  fileprivate var shownAtItsEnd: String {
    let line = printable
    return line.count > 60 ? "..." + line.suffix(57) : line
  }
}

/// The daemon's permissions for namespaces.
struct Permissions: Sendable {
  /// `allowPlain`.
  var plain = false
  /// `commands.allow` or `ask.allow` names something.
  var commands = false
  /// There is `device.tags`.
  var tags = false
  /// `ask.everySecond`; nil: `ask.allow` names nothing.
  var askInterval: Duration?
}

/// The keys that a namespace may choose from.
struct KeyRing: Sendable {
  var keys: [DaemonConfiguration.Key] = []
  /// Ids that stand under `keys` with a fault: they are known, and said nothing more about.
  var brokenIDs: Set<String> = []
  /// False if the value of `keys` could not be read at all.
  var isComplete = true
}
