import Glibc
import PrismPacket
import PrismProtocol

/// A packet that was decrypted, unpacked and checked. Its rows are places in one buffer.
struct OpenedPacket: Sendable {
  struct Row: Sendable {
    var meta: Range<Int>
    /// `MONITOR_TYPE` and `REPORT_ID`; empty where the meta has none.
    var type: Range<Int>, reportID: Range<Int>
    /// `CREATE_TIME`, milliseconds since 1970; nil where the meta has none.
    var createdTime: Int64?
  }

  let delivery: Delivery
  /// The metas, one a line, followed by strings of theirs whose escapes were resolved.
  let bytes: [UInt8]
  let rows: [Row]
  /// One a row for the kind `payload`; none for `meta`.
  let payloads: [[UInt8]]
  /// Its share of the memory of all packets; nil: it is not counted.
  let lease: MemoryBudget.Lease?

  /// - Throws: 422 naming the row whose meta is too large or no JSON object; 400 where the count is another than announced.
  init(
    _ delivery: Delivery, _ packet: UnpackedPacket, lease: MemoryBudget.Lease? = nil
  ) throws(CollectorRefusal) {
    (self.delivery, self.lease, payloads) = (delivery, lease, packet.payloads)
    let metas = packet.metas
    var reader = RowReader(textBytes: metas.count)
    var start = 0
    while true {
      let end = Self.lineEnd(metas, from: start)
      guard reader.rows.count < delivery.itemCount else { throw Self.mismatch(delivery, "more") }
      try reader.read(metas.span, start..<end)
      guard end < metas.count else { break }
      start = end + 1
    }
    guard reader.rows.count == delivery.itemCount,
      delivery.context.kind == .meta || payloads.count == delivery.itemCount
    else { throw Self.mismatch(delivery, String(reader.rows.count)) }
    rows = reader.rows
    bytes = reader.resolved.isEmpty ? metas : metas + reader.resolved
  }

  func meta(_ row: Row) -> ArraySlice<UInt8> { bytes[row.meta] }
  func payload(_ index: Int) -> [UInt8]? { delivery.context.kind == .payload ? payloads[index] : nil }

  /// The end of the line that begins at `start`, without its line feed.
  private static func lineEnd(_ text: [UInt8], from start: Int) -> Int {
    text.withUnsafeBytes { text in
      guard start < text.count, let base = text.baseAddress, let found = memchr(base + start, 0x0A, text.count - start)
      else { return text.count }
      return UnsafeRawPointer(found) - base
    }
  }

  private static func mismatch(_ delivery: Delivery, _ found: String) -> CollectorRefusal {
    CollectorRefusal(
      400, code: .countMismatch,
      "the packet holds \(found) metas or another number of payloads; Prism-Item-Count is \(delivery.itemCount)")
  }
}

/// Reads the metas of a packet one after the other.
private struct RowReader {
  private let textBytes: Int
  private(set) var rows: [OpenedPacket.Row] = []
  /// Strings whose escapes were resolved; they follow the text.
  private(set) var resolved: [UInt8] = []

  init(textBytes: Int) { self.textBytes = textBytes }

  mutating func read(_ text: Span<UInt8>, _ range: Range<Int>) throws(CollectorRefusal) {
    guard range.count <= Limits.metaBytesMax else {
      throw CollectorRefusal(
        422, code: .metaSyntax, "meta \(rows.count) has \(range.count) bytes; at most \(Limits.metaBytesMax) are taken")
    }
    let meta = text.extracting(range)
    guard let fields = try? MetaFields(meta) else {
      throw CollectorRefusal(422, code: .metaSyntax, "meta \(rows.count) is not a JSON object")
    }
    rows.append(
      OpenedPacket.Row(
        meta: range, type: place(fields.type, meta, at: range.lowerBound),
        reportID: place(fields.reportID, meta, at: range.lowerBound), createdTime: fields.createdTime))
  }

  private mutating func place(_ string: ScannedString?, _ meta: Span<UInt8>, at start: Int) -> Range<Int> {
    guard let string else { return 0..<0 }
    guard string.hasEscapes else { return start + string.range.lowerBound..<start + string.range.upperBound }
    let begin = textBytes + resolved.count
    string.append(from: meta, to: &resolved)
    return begin..<textBytes + resolved.count
  }
}
