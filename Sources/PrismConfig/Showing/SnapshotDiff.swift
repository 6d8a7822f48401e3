public import PrismProtocol

/// What is different in a new configuration, key by key. No secret is in it.
public struct SnapshotDiff: Sendable, Equatable {
  public struct Change: Sendable, Equatable, CustomStringConvertible {
    public let key: String
    /// As the file would have it; null for none. Equal only for `keys` whose files hold something else now.
    public let old: JSONValue, new: JSONValue

    /// `expirationDay 15 -> 3`
    public var description: String {
      old == new ? "\(key): a key file holds another key" : "\(key) \(Self.shown(old)) -> \(Self.shown(new))"
    }

    private static func shown(_ value: JSONValue) -> String {
      value.isNull ? "none" : value.string ?? value.text
    }
  }

  public let daemon: [Change]
  public let added: [NamespaceName], removed: [NamespaceName]
  /// Without those that were added or removed.
  public let changed: [NamespaceName: [Change]]
  /// Whose key has the same id and other bytes.
  public let rekeyed: Set<NamespaceName>

  public init(from old: Snapshot, to new: Snapshot) {
    var daemon = DaemonKeys.table.changes(from: old.daemon, to: new.daemon)
    if old.daemon.keys != new.daemon.keys, !daemon.contains(where: { $0.key == "keys" }) {
      let shown = DaemonKeys.table["keys"]?.show(new.daemon) ?? .null
      daemon.append(Change(key: "keys", old: shown, new: shown))
    }
    self.daemon = daemon
    added = new.namespaces.keys.filter { old.namespaces[$0] == nil }.sorted()
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

  public var isEmpty: Bool {
    daemon.isEmpty && added.isEmpty && removed.isEmpty && changed.isEmpty && rekeyed.isEmpty
  }

  /// For people, one a line: `shop: expirationDay 15 -> 3`.
  public var lines: [String] {
    daemon.map { "prismd: \($0)" } + added.map { "\($0): added" } + removed.map { "\($0): removed" }
      + changed.sorted { $0.key < $1.key }.flatMap { name, changes in changes.map { "\(name): \($0)" } }
  }

  /// What no running daemon can take over: its state's folder and its sockets' paths.
  public var needingRestart: [Change] {
    daemon.filter { DaemonKeys.table[$0.key]?.isLive == false }
  }
}

extension LoadedConfiguration {
  /// The faults that this configuration has for a daemon that runs on `running`, though it would start on it; nil: none.
  public func reloadFaults(running: Snapshot) -> ConfigurationFaults? {
    let faults = SnapshotDiff(from: running, to: snapshot).needingRestart.map { change in
      let (file, line) = if case .file(let file, let line) = origins[change.key] { (file, line) } else { (path, 1) }
      let (old, new) = (change.old.string ?? change.old.text, change.new.string ?? change.new.text)
      return ConfigurationFault(
        file: file, line: line, key: change.key,
        message: "is \(new), but prismd runs with \(old); restart it for this change, or take the change back")
    }
    return faults.isEmpty ? nil : ConfigurationFaults(faults)
  }
}

extension KeyTable {
  fileprivate func changes(from old: Target, to new: Target) -> [SnapshotDiff.Change] {
    keys.compactMap { key in
      let (before, now) = (key.show(old), key.show(new))
      return before == now ? nil : SnapshotDiff.Change(key: key.name, old: before, new: now)
    }
  }
}

extension DaemonConfiguration {
  fileprivate func secret(of id: String?) -> Secret? { keys.first { $0.id == id }?.secret }
}
