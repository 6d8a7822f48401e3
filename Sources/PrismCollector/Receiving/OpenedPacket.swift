import PrismPacket
import PrismProtocol

/// A packet that was decrypted, unpacked and checked. Its rows are places in one buffer.
struct OpenedPacket: Sendable {
  struct Row: Sendable {
    /// Its own members, as one JSON object.
    var own: Range<Int>
    /// The place of the members behind its own ones in `commons`, all with other keys; nil: `own` is the whole meta.
    var common: Int?
    /// The type as the program sent it, which is `MONITOR_TYPE` without the namespace in front; `REPORT_ID`. Empty if
    /// the meta has no such member.
    var type: Range<Int>, reportID: Range<Int>
    /// `CREATE_TIME`, corrected by what the device's clock was wrong; milliseconds since 1970. nil if the meta has no time.
    var createdTime: Int64?
  }

  let delivery: Delivery
  /// The lines of the meta block.
  let text: [UInt8]
  let reports: ReportRows
  /// One a row for the kind `payload`; empty for `meta`.
  var payloads: [[UInt8]]
  /// Its operations on records; nil for reports.
  var records: RecordPacket?
  /// Its share of the memory of all packets; nil: it is not counted.
  let lease: MemoryBudget.Lease?

  /// - Throws: 422 naming the row whose meta is no JSON object; 400 where the count is another than announced. Also 413 for a
  ///   row that gets too long, and 503 without memory.
  init(
    _ delivery: Delivery, _ packet: ReadPacket, _ cache: CommonCache = CommonCache(), lease: MemoryBudget.Lease? = nil
  ) throws(CollectorRefusal) {
    (self.delivery, self.lease, payloads) = (delivery, lease, packet.payloads)
    let count = packet.metas.rows.count
    guard count == delivery.itemCount, !delivery.context.kind.hasPayload || payloads.count == count else {
      throw Self.mismatch(delivery, count)
    }
    var reader = RowReader(packet.metas, cache, lease)
    reader.begin(delivery.context.namespace, clockCorrection: delivery.clockCorrection)
    for row in packet.metas.rows { try reader.read(row, of: packet.metas.text.span) }
    (text, reports) = (packet.metas.text, reader.finish())
  }

  var rows: [Row] { reports.rows }

  /// Of its rows and payloads.
  var unpackedBytes: Int { payloads.reduce(reports.bytes.count) { $0 + $1.count } }

  func payload(_ index: Int) -> [UInt8]? { delivery.context.kind.hasPayload ? payloads[index] : nil }

  private static func mismatch(_ delivery: Delivery, _ found: Int) -> CollectorRefusal {
    CollectorRefusal(
      400, code: .countMismatch,
      "the packet holds \(found) metas or another number of payloads; Prism-Item-Count is \(delivery.itemCount)")
  }

  /// Counts, notes and prints what was stored.
  func note(in collector: Collector) {
    if delivery.context.kind == .meta { collector.counts.countCrashes(crashes) }
    if records == nil { collector.devices.facts.note(self) }
    guard let print = collector.options.print else { return }
    for index in rows.indices { print(printedLine(index)) }
  }

  /// A report as `--print` writes it.
  func printedLine(_ index: Int) -> String {
    let context = delivery.context
    let head: JSONValue = [
      "device": .string(context.deviceID), "namespace": .string(context.namespace.text),
      "kind": .string(context.kind.name), "packetId": .string(context.packetID.description),
      "payloadBytes": payload(index).map { .int($0.count) } ?? .null,
    ]
    let text = String(decoding: reports.meta(rows[index]), as: UTF8.self).printableJSON
    return head.text.dropLast() + ",\"meta\":" + text + "}"
  }
}

/// The metas of reports, read one by one. Rows are places in one buffer.
struct ReportRows: Sendable {
  /// The lines, followed by strings whose escapes were resolved, and by metas that had to be merged.
  let bytes: [UInt8]
  let rows: [OpenedPacket.Row]
  /// Common information, each once, and how many rows have it.
  let commons: [(information: CommonInformation, rowCount: Int)]

  /// The whole meta of a row: its own members, and then the common ones.
  func meta(_ row: OpenedPacket.Row) -> [UInt8] {
    guard let common = row.common else { return Array(bytes[row.own]) }
    let object = commons[common].information.object
    var meta: [UInt8] = []
    meta.reserveCapacity(row.own.count + object.count)
    meta += bytes[row.own.dropLast()]
    meta.append(UInt8(ascii: ","))
    meta += object.dropFirst()
    return meta
  }
}

extension DeviceFacts {
  /// Takes what a packet of reports says. Never waits.
  nonisolated func note(_ packet: OpenedPacket) {
    guard let row = packet.rows.last else { return }
    let context = packet.delivery.context
    note(
      Key(device: context.deviceID, namespace: context.namespace.text),
      common: row.common.map { packet.reports.commons[$0].information }, own: Array(packet.reports.bytes[row.own]),
      hasCrash: packet.crashes > 0)
  }
}
