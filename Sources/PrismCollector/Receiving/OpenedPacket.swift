import PrismBase
import PrismPacket
import PrismProtocol

/// The contents of a packet: the metas with their common information, one a line.
struct UnpackedPacket: Sendable {
  let metas: [UInt8]
  /// One a row for the kind `payload`; empty for `meta`.
  let payloads: [[UInt8]]
}

/// A packet that was decrypted, unpacked and checked. Its rows are places in one buffer.
struct OpenedPacket: Sendable {
  struct Row: Sendable {
    var meta: Range<Int>
    /// The type as the program sent it, which is `MONITOR_TYPE` without the namespace in front; `REPORT_ID`. Empty if
    /// the meta has no such member.
    var type: Range<Int>, reportID: Range<Int>
    /// `CREATE_TIME`, corrected by what the device's clock was wrong; milliseconds since 1970. nil if the meta has no time.
    var createdTime: Int64?
  }

  let delivery: Delivery
  /// The metas, one a line, followed by strings of theirs whose escapes were resolved.
  let bytes: [UInt8]
  let rows: [Row]
  /// One a row for the kind `payload`; empty for `meta`.
  var payloads: [[UInt8]]
  /// Its operations on records; nil for reports.
  var records: RecordPacket?
  /// Its share of the memory of all packets; nil: it is not counted.
  let lease: MemoryBudget.Lease?

  /// - Throws: 422 naming the row whose meta is too large or no JSON object; 400 where the count is another than announced.
  init(
    _ delivery: Delivery, _ packet: UnpackedPacket, lease: MemoryBudget.Lease? = nil
  ) throws(CollectorRefusal) {
    (self.delivery, self.lease, payloads) = (delivery, lease, packet.payloads)
    let metas = packet.metas
    let namespace = delivery.context.namespace
    var reader = RowReader(
      textBytes: metas.count, lineBytesMax: delivery.context.kind.lineBytesMax,
      typePrefix: namespace.isBusiness ? Array("\(namespace)-".utf8) : [],
      clockCorrection: delivery.clockCorrection)
    for line in LineRanges(metas) {
      guard reader.rows.count < delivery.itemCount else { throw Self.mismatch(delivery, "more") }
      try reader.read(metas.span, line)
    }
    guard reader.rows.count == delivery.itemCount,
      !delivery.context.kind.hasPayload || payloads.count == delivery.itemCount
    else { throw Self.mismatch(delivery, String(reader.rows.count)) }
    rows = reader.rows
    bytes = reader.resolved.isEmpty ? metas : metas + reader.resolved
  }

  func meta(_ row: Row) -> ArraySlice<UInt8> { bytes[row.meta] }
  func payload(_ index: Int) -> [UInt8]? { delivery.context.kind.hasPayload ? payloads[index] : nil }

  private static func mismatch(_ delivery: Delivery, _ found: String) -> CollectorRefusal {
    CollectorRefusal(
      400, code: .countMismatch,
      "the packet holds \(found) metas or another number of payloads; Prism-Item-Count is \(delivery.itemCount)")
  }
}

/// Reads the metas of a packet one after the other.
private struct RowReader {
  private let textBytes: Int
  private let lineBytesMax: Int
  /// Of `MONITOR_TYPE`: not a part of the type.
  private let typePrefix: [UInt8]
  private(set) var rows: [OpenedPacket.Row] = []
  /// Strings whose escapes were resolved; they follow the text.
  private(set) var resolved: [UInt8] = []

  private let clockCorrection: Int64

  init(textBytes: Int, lineBytesMax: Int, typePrefix: [UInt8], clockCorrection: Int64) {
    self.lineBytesMax = lineBytesMax
    (self.textBytes, self.typePrefix, self.clockCorrection) = (textBytes, typePrefix, clockCorrection)
  }

  mutating func read(_ text: Span<UInt8>, _ range: Range<Int>) throws(CollectorRefusal) {
    guard range.count <= lineBytesMax else {
      throw CollectorRefusal(
        422, code: .metaSyntax, "meta \(rows.count) has \(range.count) bytes; at most \(lineBytesMax) are taken")
    }
    let meta = text.extracting(range)
    guard let fields = try? MetaFields(meta) else {
      throw CollectorRefusal(422, code: .metaSyntax, "meta \(rows.count) is not a JSON object")
    }
    rows.append(
      OpenedPacket.Row(
        meta: range, type: type(fields.type, meta, at: range.lowerBound),
        reportID: place(fields.reportID, meta, at: range.lowerBound),
        createdTime: fields.createdTime.map { corrected($0, fields) }))
  }

  /// The time of an earlier boot is by another clock than that of `Prism-Sent-Time`.
  private func corrected(_ time: Int64, _ fields: MetaFields) -> Int64 {
    let correction = fields.isOfEarlierBoot ? 0 : clockCorrection
    return time.addingReportingOverflow(fields.clockStep).partialValue.addingReportingOverflow(correction).partialValue
  }

  /// A type has no escapes that a sender makes; one that is escaped stays whole.
  private mutating func type(_ string: ScannedString?, _ meta: Span<UInt8>, at start: Int) -> Range<Int> {
    let whole = place(string, meta, at: start)
    guard let string, !string.hasEscapes, !typePrefix.isEmpty, whole.count > typePrefix.count else { return whole }
    let isPrefixed = typePrefix.indices.allSatisfy { meta[string.range.lowerBound + $0] == typePrefix[$0] }
    return isPrefixed ? whole.lowerBound + typePrefix.count..<whole.upperBound : whole
  }

  private mutating func place(_ string: ScannedString?, _ meta: Span<UInt8>, at start: Int) -> Range<Int> {
    guard let string else { return 0..<0 }
    guard string.hasEscapes else { return start + string.range.lowerBound..<start + string.range.upperBound }
    let begin = textBytes + resolved.count
    string.append(from: meta, to: &resolved)
    return begin..<textBytes + resolved.count
  }
}
