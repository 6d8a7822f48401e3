import PrismProtocol

extension LoadedConfiguration {
  /// This configuration's files under the given remote layer, in place of any that was there. Checked like a file, and
  /// against `remote.allow`; pure, no file is read.
  ///
  /// - Parameter remote: all that holds, not only what changed. Entries that are removed count as not there.
  /// - Throws: every fault, with `remote` as the file and the namespace in front of the key; then nothing is changed.
  public func applying(remote: [RemoteNamespace]) throws(ConfigurationFaults) -> LoadedConfiguration {
    var result = self
    result.snapshot.namespaces = [:]
    result.origins.namespaces = [:]
    var faults: [ConfigurationFault] = []
    let layer = Dictionary(remote.filter { !$0.isRemoved }.map { ($0.name, $0.keys) }) { $1 }
    for name in Set(drafts.keys).union(layer.keys).sorted() {
      var checker = remoteChecker(of: name)
      let draft = draft(of: name, under: layer[name], &checker)
      result.snapshot.namespaces[name] = draft.settled(lines: [:], &checker)
      result.origins.namespaces[name] = draft.origins
      faults += checker.faults
    }
    guard faults.isEmpty else { throw ConfigurationFaults(faults) }
    return result
  }

  private func remoteChecker(of name: NamespaceName) -> Checker {
    var checker = Checker().next("remote")
    checker.place = "\(name)."
    checker.take(snapshot.daemon)
    return checker
  }

  private func draft(
    of name: NamespaceName, under keys: [JSONValue.Member]?, _ checker: inout Checker
  ) -> NamespaceDraft {
    var draft = drafts[name] ?? NamespaceDraft(defaultsOf: name)
    guard let keys else { return draft }
    let allowed = snapshot.daemon.remoteValues.allow
    let granted = keys.filter { member in
      guard let fault = Self.fault(in: member.key, allowed: allowed) else { return true }
      checker.fault(0, member.key.shownInFault, fault)
      return false
    }
    let local = draft.types
    let lines = NamespaceKeys.table.read(YAMLNode(.object(granted)), into: &draft, &checker)
    if lines["monitorList"] != nil { draft.keepFilters(of: local) }
    draft.origins.merge(lines.mapValues { _ in .remote }) { $1 }
    return draft
  }

  /// Why remote configuration may not set `key`.
  static func fault(in key: String, allowed: Set<String>) -> String? {
    let table = NamespaceKeys.table
    if table.isGroup(key) { return "can never be set remotely" }
    guard let known = table[key] else { return table.unknown(key) }
    if known.remote == .never || key.contains(".") { return "can never be set remotely" }
    guard !allowed.contains(key) else { return nil }
    let why =
      known.remote == .ifSigned
      ? "can shrink what is stored, and is granted with remote.publicKey only" : "is not granted"
    return "\(why); remote.allow of prismd.yaml lists what is"
  }
}
