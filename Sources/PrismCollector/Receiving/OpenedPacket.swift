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

  func payload(_ index: Int) -> [UInt8]? { delivery.context.kind.hasPayload ? payloads[index] : nil }

  private static func mismatch(_ delivery: Delivery, _ found: Int) -> CollectorRefusal {
    CollectorRefusal(
      400, code: .countMismatch,
      "the packet holds \(found) metas or another number of payloads; Prism-Item-Count is \(delivery.itemCount)")
  }
}
