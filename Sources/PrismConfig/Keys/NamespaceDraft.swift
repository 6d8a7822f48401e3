import PrismProtocol

/// A namespace while its layers (built-in default, file, remote) are laid over one another.
package struct NamespaceDraft: Sendable {
  /// The values so far.
  package var value: NamespaceConfiguration
  /// `monitorList` as written: a type without `onlyWifi` follows the namespace's, whichever layer sets that.
  var types: [MonitoredTypeDraft]
  var origins: [String: Origin] = [:]
  /// false: of a namespace that is there without a file, as `prism` is.
  var hasFile = false
  /// Its file takes the namespace away.
  var isRetired = false

  init(_ value: NamespaceConfiguration) {
    self.value = value
    types = value.monitorList.map { MonitoredTypeDraft(entry: $0, onlyWifi: $0.onlyWifi) }
  }

  /// The namespace `name` before any file: all defaults, and for `prism` its own list.
  init(defaultsOf name: NamespaceName) {
    self.init(NamespaceConfiguration(name: name, monitorList: []))
    guard !name.isBusiness else { return }
    let others = ["appLag", "appBoot", "net", "netError"].map { MonitoredType(ReportType($0)!) }
    types = ([MonitoredType(.appCrash, isRealtime: true, isUploadPayload: true)] + others)
      .map { MonitoredTypeDraft(entry: $0) }
  }

  /// Each is nil where it was not given.
  var allowedUsers: Set<UInt32>? {
    get { Self.given(value.allow?.userIDs) }
    set { allow { $0.userIDs = newValue ?? [] } }
  }

  var allowedGroups: Set<UInt32>? {
    get { Self.given(value.allow?.groupIDs) }
    set { allow { $0.groupIDs = newValue ?? [] } }
  }

  var allowedUnits: Set<UnitPattern>? {
    get { Self.given(value.allow?.units) }
    set { allow { $0.units = newValue ?? [] } }
  }

  /// Remote configuration may tighten the filters of this machine's files, not loosen them.
  mutating func keepFilters(of local: [MonitoredTypeDraft]) {
    let own = local.map { $0.settled(onlyWifi: false) }
    let patterns = own.filter { $0.type.isPattern }
    for index in types.indices {
      let type = types[index].entry.type
      // Which of this machine's patterns meet with another pattern is not asked: all of them hold.
      let holding = type.isPattern ? patterns : [own.entry(for: type)].compactMap(\.self)
      types[index].entry.filters = holding.reduce(TypeFilters()) { $0.tightened(by: $1.filters) }
        .tightened(by: types[index].entry.filters)
    }
    let given = types.map { $0.settled(onlyWifi: false) }
    for entry in own where !entry.type.isPattern && !entry.filters.isEmpty {
      // Only a pattern means it: it gets an entry of its own, with its filters.
      guard let pattern = given.entry(for: entry.type)?.type, pattern.isPattern,
        var draft = types.first(where: { $0.entry.type == pattern })
      else { continue }
      (draft.entry.type, draft.entry.filters) = (entry.type, entry.filters.tightened(by: draft.entry.filters))
      types.append(draft)
    }
  }

  private static func given<Element>(_ set: Set<Element>?) -> Set<Element>? { set?.isEmpty == true ? nil : set }

  private mutating func allow(_ change: (inout NamespaceConfiguration.Allow) -> Void) {
    var allow = value.allow ?? .init(userIDs: [], groupIDs: [])
    change(&allow)
    value.allow = allow
  }

  /// The configuration that the layers come to, once what concerns several keys is sound too.
  /// - Parameter lines: of the keys in the file that is checked.
  func settled(lines: [String: Int], _ checker: inout Checker) -> NamespaceConfiguration {
    var result = value
    result.monitorList = types.map { $0.settled(onlyWifi: value.onlyWifi) }
    result.hasCommands = checker.permissions.commands
    result.askInterval = checker.permissions.askInterval
    result.hasTags = checker.permissions.tags && value.url != nil
    let faultLine = { (keys: [String]) in keys.compactMap { lines[$0] }.first ?? (lines.isEmpty ? 0 : 1) }
    checkTypes(lines: lines, line: faultLine([]), &checker)
    checkEnrichments(line: faultLine(["enrich", "records"]), &checker)
    checkTriggers(result, line: faultLine(["triggers", "monitorList"]), &checker)
    checkCertificate(lines: lines, line: faultLine(["tls.certFile", "tls.keyFile"]), &checker)
    if result.isPlain, !checker.permissions.plain {
      checker.fault(
        faultLine(["url"]), "url",
        "is \((result.url ?? "").shownInFault), must be https:// or loopback; allowPlain: true in prismd.yaml permits http"
      )
    }
    result.keyId = value.keyId ?? checker.keyRing.keys.first?.id
    checkKey(result, line: faultLine(["keyId", "cipher", "url"]), &checker)
    return result
  }

  private func checkTypes(lines: [String: Int], line: Int, _ checker: inout Checker) {
    guard types.isEmpty, lines["monitorList"] == nil else { return }
    checker.fault(
      line, "monitorList", "is missing, must list at least one type; for example monitorList: [{type: order}]")
  }

  private func checkEnrichments(line: Int, _ checker: inout Checker) {
    guard !checker.hasFault(at: "records") else { return }
    for (index, rule) in value.enrichments.enumerated() {
      guard let table = value.records.first(where: { $0.name == rule.table && $0.direction == .down }) else {
        checker.fault(
          line, "enrich[\(index)].table",
          "is \(rule.table), must be a table of this namespace's records with direction down")
        continue
      }
      if let field = rule.by, !table.index.contains(field) {
        let known = table.index.sorted().joined(separator: ", ")
        checker.fault(
          line, "enrich[\(index)].by",
          "is \(field), must be in the index of \(table.name) (\(known.isEmpty ? "it has no fields" : known)); "
            + "add it there, or leave `by` out for the id")
      }
    }
  }

  private func checkTriggers(_ result: NamespaceConfiguration, line: Int, _ checker: inout Checker) {
    guard !checker.hasFault(at: "monitorList") else { return }
    for (index, trigger) in value.triggers.enumerated() {
      for fault in result.monitorList.faults(of: trigger) {
        checker.fault(line, "triggers[\(index)].\(fault.key)", fault.words)
      }
    }
  }

  private func checkCertificate(lines: [String: Int], line: Int, _ checker: inout Checker) {
    // One that was given but cannot be read has its fault already.
    let hasCertificate = value.tls.certFile != nil || lines["tls.certFile"] != nil
    let hasKey = value.tls.keyFile != nil || lines["tls.keyFile"] != nil
    guard hasCertificate != hasKey else {
      return checker.checkIdentity(value.tls, keyLine: lines["tls.keyFile"] ?? line, "tls.keyFile")
    }
    let (given, missing) = hasKey ? ("keyFile", "certFile") : ("certFile", "keyFile")
    checker.fault(line, "tls.\(missing)", "is missing; a client certificate needs it beside tls.\(given)")
  }

  private func checkKey(_ result: NamespaceConfiguration, line: Int, _ checker: inout Checker) {
    guard !checker.hasFault(at: "keyId"), !checker.hasFault(at: "cipher") else { return }
    let ring = checker.keyRing
    guard let id = result.keyId else {
      if result.url != nil, ring.isComplete, ring.brokenIDs.isEmpty {
        checker.fault(
          line, "keyId",
          "is missing; a namespace with a url needs a key: `prismctl keys new` makes a file, and prismd.yaml names it under keys"
        )
      }
      return
    }
    guard let key = ring.keys.first(where: { $0.id == id }) else {
      if ring.isComplete, !ring.brokenIDs.contains(id) {
        let known = ring.keys.isEmpty ? "none" : ring.keys.map(\.id).joined(separator: ", ")
        checker.fault(line, "keyId", "is \(id), must be the id of one of the keys in prismd.yaml: \(known)")
      }
      return
    }
    guard result.url != nil || value.keyId != nil, key.secret.count != result.cipher.keyBytes else { return }
    let (has, needs) = (key.secret.count, result.cipher.keyBytes)
    checker.fault(
      line, "keyId", "is \(id), a key of \(has) bytes, must be one of \(needs) for \(result.cipher.rawValue)")
  }
}
