public import PrismProtocol

/// The differences to a new configuration, key by key. It holds no secret.
public struct SnapshotDiff: Sendable, Equatable {
  /// A key whose value differs.
  public struct Change: Sendable, Equatable, CustomStringConvertible {
    /// The key with its groups: `tls.caFile`.
    public let key: String
    /// The values as in a file; null if there is no value. They are equal only if the content of a named file changed.
    public let old: JSONValue, new: JSONValue

    /// `expirationDay 15 -> 3`
    public var description: String {
      old == new ? "\(key): what the file holds is new" : "\(key) \(Self.shown(old)) -> \(Self.shown(new))"
    }

    private static func shown(_ value: JSONValue) -> String {
      value.isNull ? "none" : value.string ?? value.text
    }
  }

  /// Changes of prismd.yaml.
  public let daemon: [Change]
  /// Namespaces that only one of the two configurations has.
  public let added: [NamespaceName], removed: [NamespaceName]
  /// Without those that were added or removed.
  public let changed: [NamespaceName: [Change]]
  /// Namespaces with a key of the same id and other bytes.
  public let rekeyed: Set<NamespaceName>
  /// Namespaces whose files are gone now, which stay as they are.
  public let gone: [NamespaceName]

  public init(from old: Snapshot, to new: Snapshot) {
    daemon = DaemonKeys.table.changes(from: old.daemon, to: new.daemon)
    added = new.namespaces.keys.filter { old.namespaces[$0] == nil }.sorted()
    gone = new.namespaces.values.filter { $0.isFileGone && old.namespaces[$0.name]?.isFileGone == false }.map(\.name)
      .sorted()
    removed = old.namespaces.keys.filter { new.namespaces[$0] == nil }.sorted()
    var changed: [NamespaceName: [Change]] = [:]
    var rekeyed: Set<NamespaceName> = []
    for (name, now) in new.namespaces {
      guard let before = old.namespaces[name] else { continue }
      if before != now {
        changed[name] = NamespaceKeys.table.changes(from: NamespaceDraft(before), to: NamespaceDraft(now))
      }
      if old.daemon.secret(of: before.keyId) != new.daemon.secret(of: now.keyId) { rekeyed.insert(name) }
    }
    (self.changed, self.rekeyed) = (changed, rekeyed)
  }

  /// Whether nothing differs.
  public var isEmpty: Bool {
    daemon.isEmpty && added.isEmpty && removed.isEmpty && changed.isEmpty && rekeyed.isEmpty && gone.isEmpty
  }

  /// For people, one a line: `shop: expirationDay 15 -> 3`.
  public var lines: [String] {
    gone.map { "\($0): its file is gone: it stays as it was until a file says `retired: true`, or prismd starts again" }
      + daemon.map { "prismd: \($0)" } + added.map { "\($0): added" } + removed.map { "\($0): removed" }
      + changed.sorted { $0.key < $1.key }.flatMap { name, changes in changes.map { "\(name): \($0)" } }
  }

  /// Changes that need a restart: the state folder and the paths of the sockets.
  public var needingRestart: [Change] {
    daemon.filter { DaemonKeys.table[$0.key]?.isLive == false }
  }
}

extension LoadedConfiguration {
  /// The faults of this configuration for a daemon that runs on `running`, though a start would accept it; nil if there
  /// is no fault.
  public func reloadFaults(running: Snapshot) -> ConfigurationFaults? {
    let faults = SnapshotDiff(from: running, to: snapshot).needingRestart.map { change in
      let (old, new) = (change.old.string ?? change.old.text, change.new.string ?? change.new.text)
      return fault(
        change.key, "is \(new), but prismd runs with \(old); restart it for this change, or take the change back")
    }
    return faults.isEmpty ? nil : ConfigurationFaults(faults, files: files)
  }

  /// The system refuses what `key` of the daemon's file asks for.
  public func fault(at key: String, _ message: String) -> ConfigurationFaults {
    ConfigurationFaults([fault(key, message)], files: files)
  }

  private func fault(_ key: String, _ message: String) -> ConfigurationFault {
    let (file, line) = if case .file(let file, let line) = origins[key] { (file, line) } else { (path, 1) }
    return ConfigurationFault(file: file, line: line, key: key, message: message)
  }
}

extension KeyTable {
  fileprivate func changes(from old: Target, to new: Target) -> [SnapshotDiff.Change] {
    keys.compactMap { key in
      key.isSame(old, new) ? nil : SnapshotDiff.Change(key: key.name, old: key.show(old), new: key.show(new))
    }
  }
}

extension DaemonConfiguration {
  fileprivate func secret(of id: String?) -> Secret? { keys.first { $0.id == id }?.secret }
}
