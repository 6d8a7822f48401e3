import PrismAdmission
import PrismConfig
import PrismProtocol
import PrismStore

/// The effect of a configuration on the stored rows, by the key that causes it.
struct RowForecast: Sendable, Equatable {
  struct Entry: Sendable, Equatable {
    let namespace: NamespaceName
    /// nil: the namespace as a whole.
    let key: String?
    /// `expired`, `evicted`, `cleared`, `removed`, `refused`, `kept` or `sent`.
    let fate: String
    /// Of meta and payload together; with `refused` bytes that must leave before reports are taken again.
    let count: Int
    /// false: there are more.
    let isExact: Bool
    let words: String
  }

  let entries: [Entry]

  /// - Parameter types: what changed `monitorList`s do, by namespace.
  init(
    _ diff: SnapshotDiff, effects: [NamespaceName: RetentionEffects], rows: [NamespaceName: Int],
    types: [NamespaceName: [Entry]] = [:]
  ) {
    var entries: [Entry] = []
    for name in diff.removed {
      guard let count = rows[name], count > 0 else { continue }
      let words =
        count == 1
        ? "1 row stays until it expires, and is sent when it comes back"
        : "\(Self.rows(count)) stay until they expire, and are sent when it comes back"
      entries.append(Entry(namespace: name, key: nil, fate: "kept", count: count, isExact: true, words: words))
    }
    for (name, changes) in diff.changed.sorted(by: { $0.key < $1.key }) {
      guard let effects = effects[name] else { continue }
      entries += changes.compactMap { Self.entry(name, $0.key, effects) } + (types[name] ?? [])
    }
    self.entries = entries
  }

  /// The differences, each with what it would do: `shop: expirationDay 15 -> 3: 1,204 rows would expire`.
  func lines(_ diff: SnapshotDiff) -> [String] {
    func words(_ namespace: NamespaceName, _ key: String?) -> String {
      let words = entries.filter { $0.namespace == namespace && $0.key == key }.map(\.words)
      return words.isEmpty ? "" : ": " + words.joined(separator: "; ")
    }
    return diff.daemon.map { "prismd: \($0)" } + diff.added.map { "\($0): added" }
      + diff.removed.map { "\($0): removed\(words($0, nil))" }
      + diff.changed.sorted { $0.key < $1.key }.flatMap { name, changes in
        changes.map { "\(name): \($0)\(words(name, $0.key))" }
      }
  }

  private static func entry(_ namespace: NamespaceName, _ key: String, _ effects: RetentionEffects) -> Entry? {
    func entry(_ fate: String, _ count: Int, _ words: String) -> Entry? {
      guard count > 0 else { return nil }
      let isExact = effects.isComplete || fate == "cleared" || fate == "removed"
      let rows = (isExact ? "" : "at least ") + rows(count)
      return Entry(
        namespace: namespace, key: key, fate: fate, count: count, isExact: isExact, words: "\(rows) would \(words)")
    }
    switch key {
    case "expirationDay": return entry("expired", effects.expired, "expire")
    case "appVersion", "isUpdateClear": return entry("cleared", effects.cleared, "be cleared")
    case "maxBodyMByte": return entry("removed", effects.removed, "be removed, for their payloads are larger")
    case "maxStoreMByte", "maxUserMByte", "onFull":
      if effects.evicted > 0 { return entry("evicted", effects.evicted, "be evicted, the oldest first") }
      guard effects.overQuotaBytes > 0, effects.isComplete else { return nil }
      let words = "reports would be refused until \(effects.overQuotaBytes.grouped) bytes have left"
      return Entry(
        namespace: namespace, key: key, fate: "refused", count: effects.overQuotaBytes, isExact: true, words: words)
    default: return nil
    }
  }

  private static func rows(_ count: Int) -> String { count == 1 ? "1 row" : "\(count.grouped) rows" }
}

extension Int {
  /// `1,204`
  var grouped: String {
    var result = ""
    for (index, digit) in String(self).reversed().enumerated() {
      if index > 0 && index.isMultiple(of: 3) { result = "," + result }
      result = String(digit) + result
    }
    return result
  }
}

extension RetentionPolicy {
  init(_ configuration: NamespaceConfiguration) {
    self.init(
      expirationDays: configuration.expirationDays, isUpdateClear: configuration.isUpdateClear,
      appVersion: configuration.configuredAppVersion, maxBodyBytes: configuration.maxBodyBytes,
      ringHours: configuration.ring.hours,
      ringReportQuota: configuration.reportsRing ? StoreQuota(configuration) : nil)
  }
}

/// The effect of another `monitorList` on the stored rows. It drops no rows. Metas of a type that is no longer accepted
/// are still sent, and payloads of types without upload stay until they expire.
struct TypeForecast {
  private let old: [MonitoredType], new: [MonitoredType]

  init(from old: [MonitoredType], to new: [MonitoredType]) { (self.old, self.new) = (old, new) }

  func entries(of namespace: NamespaceName, _ counts: TypeCounts) -> [RowForecast.Entry] {
    var entries: [RowForecast.Entry] = []
    for type in Set(counts.metas.keys).union(counts.payloads.keys).sorted() {
      for fate in fates(of: type) {
        let count = (fate.isOfPayloads ? counts.payloads : counts.metas)[type] ?? 0
        guard count > 0 else { continue }
        let rows = (fate.isOfPayloads ? "payload" : "row") + (count == 1 ? "" : "s")
        let words = "\(count.grouped) \(rows) of \(type) would \(fate.words)"
        entries.append(
          RowForecast.Entry(
            namespace: namespace, key: "monitorList", fate: fate.name, count: count, isExact: counts.isComplete,
            words: counts.isComplete ? words : "at least " + words))
      }
    }
    return entries
  }

  private struct Fate {
    let name: String
    var isOfPayloads = false
    let words: String
  }

  private func fates(of type: ReportType) -> [Fate] {
    var fates: [Fate] = []
    let (before, now) = (old.entry(for: type), new.entry(for: type))
    if before != nil, now == nil {
      fates.append(Fate(name: "sent", words: "still be sent, and no new ones be taken"))
    }
    if let before, let now, before.onlyWifi != now.onlyWifi {
      fates.append(
        now.onlyWifi
          ? Fate(name: "kept", words: "stay while the network is metered")
          : Fate(name: "sent", words: "be sent on metered networks too"))
    }
    let (uploaded, uploads) = (before?.isUploadPayload ?? false, now?.isUploadPayload ?? false)
    if uploaded != uploads {
      fates.append(
        uploads
          ? Fate(name: "sent", isOfPayloads: true, words: "be sent")
          : Fate(name: "kept", isOfPayloads: true, words: "stay until expiry"))
    }
    return fates
  }
}
