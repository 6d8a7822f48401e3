import PrismBase
import PrismHTTP
import PrismProtocol

// Crashes, grouped by their fingerprint.
extension PageAPI {
  private static let fortnight: Int64 = 14 * 86_400_000

  private func crashIndex() async throws(CollectorRefusal) -> (index: CrashIndex, isWhole: Bool) {
    let (index, store, time) = (collector.access.page.crashes, collector.store, collector.time)
    let isWhole = try await ask { () throws(StoreFailure) in try await index.refresh(store, time: time) }
    return (index, isWhole)
  }

  /// `GET /crashes`: the groups with a crash since `since` (14 days), those with the newest first.
  func crashes(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let now = collector.time.unixMilliseconds
    let since = try request.number("since", in: 0...Int64.max) ?? now - Self.fortnight
    let limit = try request.number("limit", in: 1...1000) ?? 200
    let (namespace, device) = (request.http.parameter("namespace") ?? "", request.http.parameter("device") ?? "")
    let (index, isWhole) = try await crashIndex()
    let groups = await index.groups.values.filter { group in
      group.lastTime >= since && (namespace.isEmpty || group.namespaces.contains(namespace))
        && (device.isEmpty || group.devices[device] != nil)
    }.sorted { ($1.lastTime, $0.fingerprint) < ($0.lastTime, $1.fingerprint) }
    return Self.json([
      "since": .int(since), "until": .int(now), "isWhole": .bool(isWhole), "leftOut": .int(await index.leftOut),
      "total": .int(groups.count),
      "groups": .array(groups.prefix(limit).map { $0.summary(since: since, until: now + 1, buckets: 30) }),
    ])
  }

  /// `GET /crashes/{fingerprint}`
  func crash(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let now = collector.time.unixMilliseconds
    let (index, isWhole) = try await crashIndex()
    guard let group = await index.groups[request.parts.first ?? ""] else {
      let reason = isWhole ? "" : "; not all crashes are read yet, try again"
      throw CollectorRefusal(404, "there is no group of crashes with this fingerprint\(reason)")
    }
    return Self.json(group.details(since: now - Self.fortnight, until: now + 1))
  }
}
