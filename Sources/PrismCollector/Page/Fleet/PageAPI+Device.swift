import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol

// One device.
extension PageAPI {
  private static let streamsMax = 200
  private static let countBudget: Duration = .milliseconds(600)

  /// `GET /device?id=…`
  func device(_ request: PageRequest) async throws(CollectorRefusal) -> HTTPResponse {
    guard let id = request.http.parameter("id"), DeviceID.isValid(id) else {
      throw CollectorRefusal(400, "id: must be a device's id, 1 to 128 visible ASCII characters")
    }
    let queries = try scan.queries
    let streams = try await ask { () throws(StoreFailure) in
      try await queries.streams(of: id, limit: Self.streamsMax)
    }
    let enrolled = await enrolled(id)
    guard !streams.isEmpty || enrolled != nil else {
      throw CollectorRefusal(404, "no device of this id has sent a packet, or was enrolled")
    }
    var wanted = ReportFilter()
    (wanted.device, wanted.isNewestFirst, wanted.limit) = (id, true, 1)
    let newest = try await page(wanted).reports.first
    var described: [JSONValue] = []
    for stream in streams { described.append(try await self.described(stream, of: streams.count)) }
    let entry = try? await collector.remote?.devices.entry(of: id)  // what can't be read is left out
    return Self.json([
      "device": .string(id), "streams": .array(described), "enrolled": enrolled ?? .null,
      "configuration": entry.flatMap { $0 } ?? .null, "newest": try Self.shown(newest),
      "now": .int(collector.time.unixMilliseconds),
    ])
  }

  private func enrolled(_ id: String) async -> JSONValue? {
    try? await collector.devices.store.device(id)?.json  // what can't be read is left out
  }

  private static func shown(_ report: StoredReport?) throws(CollectorRefusal) -> JSONValue {
    report.flatMap { try? JSONValue(parsing: $0.jsonText) } ?? .null  // too deep for a tree: left out
  }

  /// A stream with its ledger, and with how many of its reports are here.
  private func described(_ stream: DeviceStream, of streams: Int) async throws(CollectorRefusal) -> JSONValue {
    var wanted = ReportFilter()
    (wanted.device, wanted.namespace, wanted.kind) = (stream.device, stream.namespace, stream.kind)
    var scan = try scan
    scan.budget = Self.countBudget / streams
    let (counts, reach) = try await ask { [scan, wanted] () throws(StoreFailure) in
      try await scan.counts(wanted, ReportGrouping(bucketMilliseconds: ReportGrouping.wholeTime))
    }
    let here = counts.reduce(0) { $0 + $1.count }
    let ledger = stream.ledger.flatMap { DeviceLedger($0) }
    return [
      "namespace": .string(stream.namespace), "kind": .string(stream.kind), "packets": .int(stream.packets),
      "seenTime": .int(stream.receivedTime), "ledger": ledger?.json ?? .null, "reportsHere": .int(here),
      "readSince": Self.since(reach),
      "difference": Self.difference(ledger, here: reach.since == nil ? here : nil).map { .string($0) } ?? .null,
    ]
  }

  /// The device counts a report as delivered once it has the receipt, so at least as many were stored here.
  /// - Parameter here: nil: not all were counted.
  static func difference(_ ledger: DeviceLedger?, here: Int?) -> String? {
    guard let ledger else { return nil }
    if let difference = ledger.difference { return difference }
    let delivered = ledger.counts["delivered", default: 0]
    guard let here, here < delivered else { return nil }
    return
      "\(delivered - here) of \(delivered) reports that the device delivered are not here: retention deleted them, they "
      + "went to another store, or they are lost"
  }
}
