import PrismBase
import PrismHTTP
import PrismProtocol

/// Answers the API about all devices.
struct DeviceAPI {
  let api: PageAPI

  /// `GET /devices`
  func devices(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let limit = try request.number("limit", in: 1...1000) ?? 100
    let after = try request.number("after", in: 0...1_000_000) ?? 0
    let order = try request.word("sort", DeviceSummary.Order.self) ?? .seen
    let search = request.http.parameter("search")?.lowercased() ?? ""
    let wanted = try request.devices
    let now = api.collector.time.unixMilliseconds
    let devices = try await api.collector.access.page.devices.devices(now: api.collector.time.uptime) {
      () async throws(CollectorRefusal) in try await all()
    }
    let found = devices.filter {
      (search.isEmpty || $0.device.lowercased().contains(search)) && wanted?.includes($0, now: now) ?? true
    }.sorted { $0.isBefore($1, order) }
    let page = found.dropFirst(after).prefix(limit)
    return PageAPI.json([
      "devices": .array(page.map(\.json)), "total": .int(found.count),
      "next": after + page.count < found.count ? .int(after + page.count) : .null,
    ])
  }

  /// All devices that sent something, with their tags and apps.
  private func all() async throws(CollectorRefusal) -> [DeviceSummary] {
    let streams = try await api.streams()
    let (facts, records) = (api.collector.devices.facts, api.collector.store.recordStore)
    let namespaces = Set(streams.map(\.namespace)).union([NamespaceName.prism.text]).sorted()
    let (apps, tags) = try await api.ask { () throws(StoreFailure) in
      (try await facts.all(), CollectedTags.merged(try await records?.tags(of: namespaces) ?? []))
    }
    var devices: [String: DeviceSummary] = [:]
    devices.reserveCapacity(streams.count)
    for stream in streams { devices[stream.device, default: DeviceSummary(device: stream.device)].add(stream) }
    for (key, facts) in apps { devices[key.device]?.add(facts) }
    for (device, tags) in tags { devices[device]?.tags = tags }
    return Array(devices.values)
  }
}
