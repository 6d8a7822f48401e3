public import PrismProtocol

/// The configuration of one namespace: the table "A namespace" of docs/configuration.md, in base units.
public struct NamespaceConfiguration: Sendable, Equatable {
  /// The action when the namespace is full.
  public enum OnFull: String, Sendable, CaseIterable { case evictOldest, refuse }
  /// A report whose payload is over `maxBodyBytes` is refused, or stored without the payload.
  public enum OnLargePayload: String, Sendable, CaseIterable { case refuse, meta }
  /// Whether an accepted packet needs a receipt.
  public enum Receipt: String, Sendable, CaseIterable { case required, optional }

  /// The namespace.
  public var name: NamespaceName
  /// The collector's base address without a trailing slash; nil: rows are stored, nothing is sent.
  public var url: String?
  /// The upload switch, default on.
  public var isUpload = true
  /// The gather switch, default on; off refuses every report.
  public var isGather = true
  /// Whether a change of `appVersion` clears older rows, default on.
  public var isUpdateClear = true
  /// The version of the app that reports; `auto`: each app says it in its greeting; nil if not configured.
  public var appVersion: String?
  /// The largest batch before compression; also the largest payload.
  public var maxBodyBytes = 1_048_576
  /// The time between timed uploads, 1 to 30 s.
  public var uploadInterval: Duration = .seconds(5)
  /// The most rows in one packet.
  public var maxItem = 1000
  /// The most packets of one kind that are on their way at a time, 1 to 64.
  public var window = 16
  /// Whether packets are packed with a dictionary that the collector makes of them.
  public var dictionary = false
  /// The most bytes sent on metered networks in 24 h.
  public var maxFlowBytes = 20 * 1_048_576
  /// The age at which a row is dropped, 1 to 30 days.
  public var expirationDays = 15
  /// The default of the types' `onlyWifi`; already applied to each type of `monitorList`.
  public var onlyWifi = false
  /// In the order of the file. Never empty.
  public var monitorList: [MonitoredType]
  /// The most bytes that this namespace may hold on disk.
  public var maxStoreBytes = 256 * 1_048_576
  /// Rules that let kept reports go, in the order of the file.
  public var triggers: [ReportTrigger] = []
  /// The bounds of the reports that are kept.
  public var ring = Ring()
  /// The most bytes that one user may hold of it; nil: as much as the namespace.
  public var maxUserBytes: Int?
  /// The action when the namespace is full, default `evictOldest`.
  public var onFull = OnFull.evictOldest
  /// The fate of a report whose payload is too large, default `refuse`.
  public var onLargePayload = OnLargePayload.refuse
  /// The cipher of packets.
  public var cipher = Cipher.aes128GCM
  /// The key to encrypt with: of `daemon.keys`. nil only where there is no `url`.
  public var keyId: String?
  /// A bearer token.
  public var token: HeldFile?
  /// Certificates for the collector.
  public var tls = TLSFiles()
  /// The X25519 public key to which payloads are sealed before they are stored; nil: they are stored as they come.
  public var sealKey: [UInt8]?
  /// nil: everyone who may open the socket.
  public var allow: Allow?
  /// Whether a 2xx needs a receipt, default `required`.
  public var receipt = Receipt.required
  /// Whether a refusal without `Prism-Verdict` settles reports, default false.
  public var trustsRefusals = false
  /// The least time between uploads on metered networks.
  public var meteredInterval: Duration = .seconds(60)
  /// The tables of records, in the order of the file. Each name is there once; references lead to tables of the list.
  public var records: [RecordTable] = []
  /// A server may send commands: there is the table `prism.command`. Follows `commands.allow` and `ask.allow` of the daemon's file.
  public var hasCommands = false
  /// How often a server's questions are looked for on networks that are not metered; nil: it may not ask. Follows `ask` there.
  public var askInterval: Duration?
  /// The device tells its tags: there is the table `prism.tags`. Follows `device.tags` of the daemon's file and `url`.
  public var hasTags = false
  /// Its file is gone without a word: what it said last stays in force.
  public var isFileGone = false
  /// The fields of records that are added to reports. Their tables are of `records`, with direction `down`.
  public var enrichments: [RecordEnrichment] = []
  /// The least time between synchronizations of records, 1 to 86,400 s.
  public var recordInterval: Duration = .seconds(300)
  /// The most operations on records in one packet, 1 to 1,000.
  public var maxRecordItem = 100

  /// The bounds of reports of types with `keep: ring`.
  public struct Ring: Sendable, Equatable {
    /// The most bytes, beside `maxStoreBytes`; 64 MiB by default.
    public var bytes = 64 * 1_048_576
    /// The most bytes of the ring in memory; 16 MiB by default.
    public var memoryBytes = 16 * 1_048_576
    /// A report is overwritten when it was held for so long, 1 to 8,760 hours; a week by default.
    public var hours = 168
  }

  /// Resolved when the configuration is read: a user or group that does not exist is a fault.
  public struct Allow: Sendable, Equatable {
    /// Users and groups that may report.
    public var userIDs: Set<UInt32>, groupIDs: Set<UInt32>
    /// Units whose processes may report.
    public var units: Set<UnitPattern>
    public init(userIDs: Set<UInt32>, groupIDs: Set<UInt32>, units: Set<UnitPattern> = []) {
      (self.userIDs, self.groupIDs, self.units) = (userIDs, groupIDs, units)
    }
  }

  /// Whether each app says its version itself.
  public var followsAppVersions: Bool { appVersion == "auto" }
  /// `appVersion` if it is one; nil if each app says its own.
  public var configuredAppVersion: String? { followsAppVersions ? nil : appVersion }

  /// All tables of records: those of `records`, and the built-in ones.
  public var tables: [RecordTable] { records + (hasCommands ? [.commands] : []) + (hasTags ? [.tags] : []) }

  /// True if packets leave this machine over plain http.
  public var isPlain: Bool {
    guard let address = url.flatMap({ HTTPAddress($0) }) else { return false }
    return !address.isPrivate
  }

  /// All defaults, for `monitorList`.
  public init(name: NamespaceName, monitorList: [MonitoredType]) {
    self.name = name
    self.monitorList = monitorList
  }

  /// Sessions and crashes of apps are counted for it: it takes their type.
  public var countsHealth: Bool { monitorList.entry(for: .appHealth) != nil }
  /// The fate of its kept reports is reported: it names this type.
  public var reportsRing: Bool { monitorList.contains { $0.type == .ringHealth } }
  /// Reports of a type are kept in memory.
  public var keepsInMemory: Bool { monitorList.contains { $0.keep == .memory } }
}

extension [MonitoredType] {
  /// The types of the list; where it has patterns, the named ones and those of `held`.
  public func types(and held: Set<ReportType>) -> [ReportType] {
    let named = map(\.type).filter { !$0.isPattern }
    return named.count == count ? named : named + held.subtracting(named).sorted()
  }

  /// The types with `reduce`, and those that a pattern with it does not mean: their window has no seconds.
  public var reductions: [ReportReduction] {
    guard contains(where: { $0.filters.reduce != nil }) else { return [] }
    let patterns = ReportType.patterns(of: map(\.type))
    let entries = filter { !$0.type.isPattern } + patterns.compactMap { pattern in first { $0.type == pattern } }
    return entries.map { entry in
      var rule = entry.filters.reduce ?? ReportReduction()
      if entry.filters.reduce == nil { rule.seconds = 0 }
      rule.type = entry.type
      return rule
    }
  }

  /// The entry that `type` is taken by: the one of its name, else the first pattern that means it, `*` last.
  public func entry(for type: ReportType) -> MonitoredType? {
    if let own = first(where: { $0.type == type }) { return own }
    let pattern = ReportType.patterns(of: map(\.type)).first { $0.matches(type) }
    return pattern.flatMap { pattern in first { $0.type == pattern } }
  }

  /// Why a trigger, of a file or of a server, would never let a report go.
  public func faults(of trigger: ReportTrigger) -> [(key: String, words: String)] {
    let isKnown = entry(for: trigger.on) != nil
    return (isKnown ? [] : [("on", "is \(trigger.on), must be a type of monitorList")])
      + (contains { $0.keep != .queue }
        ? [] : [("types", "finds no report: no type of monitorList has keep: ring or keep: memory")])
  }
}

/// One entry of a namespace's monitor list.
public struct MonitoredType: Sendable, Equatable {
  /// The type's name, or a pattern.
  public var type: ReportType
  /// Where its reports wait.
  public enum Keep: String, Sendable, CaseIterable { case queue, ring, memory }

  /// The switches of the type.
  public var onlyWifi: Bool, isRealtime: Bool, isUploadPayload: Bool
  /// The place where its reports wait; `queue` by default.
  public var keep: Keep
  /// The rules that hold before a report is stored; no rule by default.
  public var filters: TypeFilters

  public init(
    _ type: ReportType, onlyWifi: Bool = false, isRealtime: Bool = false, isUploadPayload: Bool = false,
    keep: Keep = .queue, filters: TypeFilters = TypeFilters()
  ) {
    (self.type, self.onlyWifi, self.isRealtime, self.isUploadPayload) = (type, onlyWifi, isRealtime, isUploadPayload)
    (self.keep, self.filters) = (keep, filters)
  }
}
