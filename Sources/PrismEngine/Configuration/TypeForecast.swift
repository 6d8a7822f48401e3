import PrismConfig
import PrismProtocol
import PrismStore

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
