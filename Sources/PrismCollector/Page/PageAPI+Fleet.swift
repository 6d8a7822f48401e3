import PrismBase
import PrismConfig
import PrismHTTP
import PrismOutputs
import PrismPacket
import PrismProtocol

// The fleet: all devices, and the collector itself.
extension PageAPI {
  /// `GET /fleet`
  func fleet(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let scope = request.scope
    let list = try await DeviceAPI(api: self).list(of: scope)
    let (devices, now) = (list.devices, collector.time.unixMilliseconds)
    let seen = { (milliseconds: Int64) in devices.count { $0.seenTime > now - milliseconds } }
    return Self.json([
      "now": now, "startTime": collector.access.page.startTime,
      "devices": JSONValue([
        "total": devices.count, "hour": seen(3_600_000), "day": seen(86_400_000), "week": seen(604_800_000),
        "silent": devices.count { $0.isSilent(now: now) }, "differences": devices.count { $0.sums.differences > 0 },
        "isCut": list.isCut,
      ]),
      "ledger": JSONValue(byName: list.accounts),
      "quotas": collector.store.quotas.figures.filter { scope.has($0.namespace) }.map {
        JSONValue(["namespace": $0.namespace, "rows": $0.rows, "rowsMax": $0.rowsMax])
      },
      // These are of all namespaces.
      "packets": scope.isLimited ? [] : Self.counts(collector.counts.outcomes),
      "refusals": scope.isLimited ? [] : Self.counts(collector.counts.refusals),
      "outputs": scope.isLimited ? [] : await outputs(now), "store": JSONValue(["failure": collector.store.failure]),
      "configuration": scope.isLimited ? .null : await RolloutAPI(api: self).summary(),
      "retentionDays": collector.options.retentionDays, "retentionRules": collector.options.retention.count,
    ])
  }

  private static func counts(_ counts: [String: Int]) -> [JSONValue] {
    counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { JSONValue(["name": $0.key, "count": $0.value]) }
  }
}

// MARK: - Devices

struct DeviceAPI: PageAnswers {
  private static let streamsMax = 200
  private static let countBudget: Duration = .milliseconds(600)

  let api: PageAPI

  private var collector: Collector { api.collector }

  /// `GET /devices`
  func devices(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let limit = try request.number("limit", in: 1...1000) ?? 100
    let text = request.http.parameter("after") ?? ""
    let after = DeviceSummary.Place(text)
    guard after != nil || text.isEmpty else {
      throw CollectorRefusal(400, "after: must be the `next` of the page before")
    }
    let order = try request.word("sort", DeviceSummary.Order.self) ?? .seen
    let search = request.http.parameter("search")?.lowercased() ?? ""
    let wanted = try request.devices
    let now = collector.time.unixMilliseconds
    let devices = try await devices(of: request.scope)
    let found = devices.filter {
      (search.isEmpty || $0.device.lowercased().contains(search)) && wanted?.includes($0, now: now) ?? true
    }
    let rest = found.map { (place: $0.place(order), device: $0) }.filter { one in after.map { $0 < one.place } ?? true }
    let page = rest.sorted { $0.place < $1.place }.prefix(limit)
    return PageAPI.json([
      "devices": page.map(\.device.json), "total": found.count,
      "next": page.count < rest.count ? page.last?.place.text : nil,
    ])
  }

  /// The devices that sent something to the namespaces of the scope.
  func devices(of scope: Scope) async throws(CollectorRefusal) -> [DeviceSummary] { try await list(of: scope).devices }

  func list(of scope: Scope) async throws(CollectorRefusal) -> DeviceList {
    try await collector.access.page.devices(of: scope).list(now: collector.time.uptime) {
      () async throws(CollectorRefusal) in try await all(scope)
    }
  }

  /// The same, read from the store, with their tags and apps.
  private func all(_ scope: Scope) async throws(CollectorRefusal) -> DeviceList {
    let queries = api.scan.queries
    let streams = try await api.ask { () throws(StoreFailure) in
      try await queries.streams(scope.ofDevices, of: nil, limit: DeviceSummary.streamsMax)
    }
    let (facts, records) = (collector.devices.facts, collector.store)
    let namespaces = Set(streams.map(\.namespace)).union([NamespaceName.prism.text]).filter(scope.has).sorted()
    let (apps, tags) = try await api.ask { () throws(StoreFailure) in
      (try await facts.all(), try await records.tags(of: namespaces))
    }
    var (devices, accounts) = DeviceSummary.byDevice(streams)
    for (key, facts) in apps where scope.has(key.namespace) { devices[key.device]?.add(facts) }
    // Those of a namespace are for the devices that send to it: who has the namespace has no say over others.
    let own = tags.filter { $0.isOfFleet || devices[$0.device]?.namespaces.contains($0.namespace) ?? false }
    for (device, tags) in CollectedTags.merged(own) { devices[device]?.tags = tags }
    return DeviceList(
      devices: Array(devices.values), accounts: accounts, isCut: streams.count == DeviceSummary.streamsMax)
  }

  /// `GET /device?id=…`
  func device(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    guard let id = request.http.parameter("id"), DeviceID.isValid(id) else {
      throw CollectorRefusal(400, "id: must be a device's id, 1 to 128 visible ASCII characters")
    }
    let (queries, scope) = (api.scan.queries, request.scope)
    let streams = try await api.ask { () throws(StoreFailure) in
      try await queries.streams(scope, of: id, limit: Self.streamsMax)
    }
    // Both are left out where they can't be read, and for a reader of some namespaces.
    let enrolled = scope.isLimited ? nil : try? await collector.devices.store.device(id)?.json
    guard !streams.isEmpty || enrolled != nil else {
      throw CollectorRefusal(404, "no device of this id has sent a packet, or was enrolled")
    }
    var wanted = ReportFilter(scope: scope)
    (wanted.device, wanted.isNewestFirst, wanted.limit) = (id, true, 1)
    let newest = try await api.page(wanted).reports.first
    var described: [JSONValue] = []
    for stream in streams { described.append(try await self.described(stream, scope, of: streams.count)) }
    let entry = scope.isLimited ? nil : try? await collector.remote?.devices.entry(of: id)
    return PageAPI.json([
      "device": id, "streams": described, "enrolled": enrolled, "configuration": entry.flatMap { $0 },
      "newest": newest.flatMap { try? JSONValue(parsing: $0.jsonText) },  // too deep for a tree: left out
      "now": collector.time.unixMilliseconds,
    ])
  }

  /// A stream with its ledger, and with how many of its reports are here.
  private func described(_ stream: DeviceStream, _ scope: Scope, of streams: Int) async throws(CollectorRefusal)
    -> JSONValue
  {
    var wanted = ReportFilter(scope: scope)
    (wanted.device, wanted.namespace, wanted.kind) = (stream.device, stream.namespace, stream.kind)
    let (counts, reach) = try await api.ask { [wanted] () throws(StoreFailure) in
      let whole = ReportGrouping(bucketMilliseconds: ReportGrouping.wholeTime)
      return try await api.scan.counts(wanted, whole, within: Self.countBudget / streams)
    }
    let here = counts.reduce(0) { $0 + $1.count }
    let ledger = stream.account
    return JSONValue([
      "namespace": stream.namespace, "kind": stream.kind, "packets": stream.packets, "seenTime": stream.receivedTime,
      "ledger": ledger?.json, "reportsHere": here, "readSince": reach.since,
      "difference": Self.difference(ledger, here: reach.since == nil && stream.isOfReports ? here : nil),
    ])
  }

  /// The device counts a report as delivered once it has the receipt, so at least as many were stored here.
  /// - Parameter here: nil: not all were counted.
  static func difference(_ ledger: DeviceLedger?, here: Int?) -> String? {
    guard let ledger else { return nil }
    if let difference = ledger.difference { return difference }
    let delivered = ledger.counts["delivered", default: 0]
    guard let here, here < delivered else { return nil }
    return
      "\(delivered - here) of \(delivered) reports that the device delivered are not here: retention or an erasure "
      + "deleted them, an older backup was restored, they went to another store, or they are lost"
  }
}

extension DeviceSummary.Place {
  /// As the parameter `after`.
  fileprivate var text: String { "\(number):\(device)" }

  /// - Returns: nil: it is no place.
  fileprivate init?(_ text: String) {
    guard let end = text.firstIndex(of: ":"), let number = Int(text[..<end]) else { return nil }
    self.init(number: number, device: String(text[text.index(after: end)...]))
  }
}

// MARK: - Outputs and their dead letters

extension PageAPI {
  private func outputs(_ now: Int64) async -> [JSONValue] {
    await OutputRunner.figures(of: collector.outputs).map { name, figures in
      let lag = figures.waitingSince.map { max(0, now - $0) / 1000 }
      return JSONValue([
        "name": name, "leading": figures.isLeading, "delivered": figures.delivered, "refused": figures.refused,
        "dead": figures.dead.reports, "failures": figures.failures, "holds": figures.holds,
        "lagSeconds": figures.isLeading ? lag ?? 0 : nil as Int64?,
      ])
    }
  }

  /// `GET /outputs/{name}/dead`
  func deadLetters(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let limit = try request.number("limit", in: 1...1000) ?? 100
    let after = try request.number("after", in: 0...Int64.max) ?? 0
    let source = try source(of: request)
    let dead = try await ask { () throws(StoreFailure) in
      try await source.dead(after: after, limit: limit, onlyRequeued: false)
    }
    await source.close()
    return Self.json(["dead": dead.map(\.json), "next": dead.count == limit ? dead.last?.id : nil])
  }

  /// `POST /outputs/{name}/dead` with `{"action": "requeue"}` or `{"action": "drop"}`, for the ids of `first` to `last`.
  func changeDeadLetters(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let body = try Self.body(request, known: ["action": .text, "first": .number, "last": .number])
    guard let change = body["action"]?.string.flatMap({ DeadChange(rawValue: $0) }) else {
      throw CollectorRefusal(400, "action: must be requeue or drop")
    }
    let (first, last) = (try Self.id(body, "first") ?? 0, try Self.id(body, "last") ?? .max)
    guard first <= last else { throw CollectorRefusal(400, "first: is \(first), must be at most `last`, \(last)") }
    let source = try source(of: request)
    let count = try await ask { () throws(StoreFailure) in try await source.change(dead: first...last, change) }
    await source.close()
    note(request, did: "dead letters of an output: \(change.rawValue)", to: "\(request.parts[0]), \(count) reports")
    return Self.json(["changed": count])
  }

  /// nil: the member is missing. Another value than a number must not stand for all dead letters.
  private static func id(_ body: JSONValue, _ name: String) throws(CollectorRefusal) -> Int64? {
    guard let value = body[name] else { return nil }
    guard let id = value.int, id >= 0 else { throw CollectorRefusal(400, "\(name): must be the id of a report") }
    return Int64(id)
  }

  private func source(of request: PageRequest) throws(CollectorRefusal) -> any OutputSource {
    guard collector.outputs.contains(where: { $0.name == request.parts[0] }) else {
      throw .unknown("output", among: collector.outputs.map(\.name))
    }
    return collector.store.outputSource(request.parts[0])
  }
}
