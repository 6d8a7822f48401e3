import PrismBase
import PrismHTTP
import PrismProtocol

// The fleet: all devices, and the collector itself.
extension PageAPI {
  /// Streams that one question reads, those heard of last.
  private static let streamsMax = 200_000

  func streams() async throws(CollectorRefusal) -> [DeviceStream] {
    let queries = try scan.queries
    return try await ask { () throws(StoreFailure) in
      try await queries.streams(of: nil, limit: Self.streamsMax)
    }
  }

  /// `GET /fleet`
  func fleet(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    let streams = try await streams()
    let now = collector.time.unixMilliseconds
    let devices = DeviceSummary.all(of: streams)
    let seen = { (milliseconds: Int64) in JSONValue.int(devices.count { $0.seenTime > now - milliseconds }) }
    var accounts: [String: Int] = [:]
    for ledger in streams.lazy.compactMap(\.ledger).compactMap({ DeviceLedger($0) }) {
      accounts["stored", default: 0] += ledger.stored
      accounts["waiting", default: 0] += ledger.waiting
      for (name, count) in ledger.counts { accounts[name, default: 0] += count }
    }
    return Self.json([
      "now": .int(now), "startTime": .int(collector.access.page.startTime),
      "devices": [
        "total": .int(devices.count), "hour": seen(3_600_000), "day": seen(86_400_000), "week": seen(604_800_000),
        "silent": .int(devices.count { $0.isSilent(now: now) }),
        "differences": .int(devices.count { $0.differences > 0 }),
        "isCut": .bool(streams.count == Self.streamsMax),
      ],
      "ledger": .object(accounts.sorted { $0.key < $1.key }.map { JSONValue.Member($0.key, .int($0.value)) }),
      "packets": Self.counts(collector.counts.outcomes), "refusals": Self.counts(collector.counts.refusals),
      "outputs": await outputs(now), "store": ["failure": collector.store.failure.map { .string($0) } ?? .null],
      "configuration": await configurationSummary(),
      "retentionDays": collector.options.retentionDays.map { .int($0) }
        ?? .null,
    ])
  }

  private static func counts(_ counts: [String: Int]) -> JSONValue {
    .array(
      counts.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map {
        ["name": .string($0.key), "count": .int($0.value)]
      })
  }
}
