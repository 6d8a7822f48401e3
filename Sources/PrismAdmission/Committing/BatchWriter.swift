import PrismBase
import PrismProtocol

/// Appends admitted reports to the batch that a connection is filling. Pure.
struct BatchWriter: Sendable {
  /// The rows as far as they were appended.
  private(set) var batch: ReportBatch
  /// Indices in the namespace's monitor list, one for each of `batch.types`.
  private var monitored: [Int] = []
  private let rules: AdmissionRules.Namespace

  /// Begins an empty batch. - Parameter app: of the sender.
  init(
    namespace: AdmissionRules.Namespace, userID: UInt32, context: CommonContext, app: @autoclosure () -> AppVersion?
  ) {
    rules = namespace
    batch = ReportBatch(
      namespace: namespace.name, userID: userID, context: context, quota: namespace.quota,
      sealKey: namespace.payloads.sealKey, app: namespace.follows.appVersions ? app() : nil)
  }

  /// Whether `admitted` of a session with `context` belongs in this batch.
  func takes(_ admitted: Admission.Admitted, context: CommonContext) -> Bool {
    batch.context === context && rules === admitted.namespace
  }

  /// It is closed at this many rows or bytes, so that one connection's turn in a commit is short.
  private static let rowsMax = 256
  private static let bytesMax = 256 * 1024

  /// Whether it must be closed now.
  private(set) var isFull = false

  var bytes: Int { Self.bytes(of: batch) }

  static func bytes(of batch: ReportBatch) -> Int {
    batchBytes + batch.context.members.count + batch.arena.count
      + batch.rows.count * MemoryLayout<ReportBatch.Row>.stride
      + batch.marks.count * MemoryLayout<(row: Int, mark: ReportBatch.Mark)>.stride
      + (batch.record?.memoryBytes ?? 0)
  }

  /// The cost of a batch beside its content.
  private static let batchBytes = 256

  /// Appends a report whole. - Throws: `bad_request` for a payload that isn't base64, `payload_too_large`; then nothing
  /// was appended.
  mutating func append(
    _ admitted: Admission.Admitted, _ report: ScannedReport, in line: Span<UInt8>
  ) throws(Refusal) {
    let start = batch.arena.count
    var row = begin(admitted, report, in: line)
    if case .base64(let text) = report.payload, !admitted.leavesPayloadOut {
      do throws(Refusal) {
        row.payload = try decode(text, in: line, max: admitted.namespace.payloads.bytesMax)
      } catch {
        batch.arena.removeSubrange(start...)
        throw error
      }
    }
    add(row, admitted.mark)
  }

  /// Begins a report whose payload follows: `appendPayload` brings it, `finish` makes it a row.
  mutating func begin(
    _ admitted: Admission.Admitted, _ report: ScannedReport, in line: Span<UInt8>, payloadBytes: Int
  ) -> ReportBatch.Row {
    if batch.rows.isEmpty { batch.arena.reserveCapacity(line.count + payloadBytes) }
    return begin(admitted, report, in: line)
  }

  private mutating func begin(
    _ admitted: Admission.Admitted, _ report: ScannedReport, in line: Span<UInt8>
  ) -> ReportBatch.Row {
    let start = batch.arena.count
    var row = ReportBatch.Row(
      type: slot(of: admitted), createdTime: admitted.createdTime, body: start..<start, metaBytes: admitted.metaBytes)
    switch admitted.body {
    case .asWritten(let range): batch.arena.append(copying: line, range)
    case .rewritten(let rewritten):
      batch.arena.append(contentsOf: rewritten.members)
      row.isSelfContained = rewritten.isSelfContained
      row.hasOwnCreateTime = rewritten.hasOwnCreateTime
    }
    row.body = start..<batch.arena.count
    row.isPayloadLeftOut = admitted.leavesPayloadOut
    if let id = report.reportID {
      id.append(from: line, to: &batch.arena)
      row.clientReportID = row.body.upperBound..<batch.arena.count
    } else if batch.sealKey != nil, report.payload != .none, !admitted.leavesPayloadOut {
      // The payload is sealed for its report's id, which the store would give too late.
      let id = Hex.random(byteCount: 16).utf8
      batch.arena.append(contentsOf: id)
      row.metaBytes += id.count - RowID.reportIDBytes
      row.clientReportID = row.body.upperBound..<batch.arena.count
    }
    return row
  }

  /// Appends a piece of the payload that `begin` announced.
  mutating func appendPayload(_ bytes: Span<UInt8>, _ range: Range<Int>) {
    batch.arena.append(copying: bytes, range)
  }

  /// - Parameter payloadBytes: the number of bytes at the end of the arena that are `row`'s payload.
  /// - Parameter mark: what a filter decided about the report.
  mutating func finish(_ row: ReportBatch.Row, payloadBytes: Int, mark: ReportBatch.Mark? = nil) {
    var row = row
    row.payload = batch.arena.count - payloadBytes..<batch.arena.count
    add(row, mark)
  }

  private mutating func add(_ row: ReportBatch.Row, _ mark: ReportBatch.Mark?) {
    defer { isFull = batch.rows.count >= Self.rowsMax || bytes >= Self.bytesMax }
    guard let mark else { return batch.rows.append(row) }
    var row = row
    if mark == .sampledOut {  // nothing of it is stored
      batch.arena.removeSubrange(row.body.lowerBound...)
      row.body = batch.arena.count..<batch.arena.count
      (row.payload, row.clientReportID) = (nil, nil)
    }
    batch.marks.append((batch.rows.count, mark))
    batch.rows.append(row)
  }

  /// Removes a report that was begun and whose payload does not come whole.
  mutating func drop(_ row: ReportBatch.Row) { batch.arena.removeSubrange(row.body.lowerBound...) }

  private mutating func slot(of admitted: Admission.Admitted) -> Int {
    if let slot = monitored.firstIndex(of: admitted.type) { return slot }
    monitored.append(admitted.type)
    batch.types.append(admitted.namespace.rowType(admitted.type))
    return monitored.count - 1
  }

  private mutating func decode(_ text: ScannedString, in line: Span<UInt8>, max: Int) throws(Refusal) -> Range<Int> {
    let start = batch.arena.count
    let isBase64: Bool
    if text.hasEscapes {  // some encoders write a slash as \/
      var plain: [UInt8] = []
      text.append(from: line, to: &plain)
      isBase64 = Base64.decode(plain.span, plain.indices, appendingTo: &batch.arena)
    } else {
      isBase64 = Base64.decode(line, text.range, appendingTo: &batch.arena)
    }
    guard isBase64 else { throw Refusal(.badRequest, "`payload` must be base64 (RFC 4648, section 4, padded)") }
    guard batch.arena.count - start <= max else { throw Admission.payloadTooLarge(max: max) }
    return start..<batch.arena.count
  }
}
