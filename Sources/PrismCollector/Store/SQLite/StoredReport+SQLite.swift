import PrismProtocol
import PrismSQLite

/// The columns of `reports r` that a report is read from. `NameReader` has the names of its stream and its type.
enum ReportColumn: String, SQLiteColumn {
  case id = "r.id"
  case stream = "r.stream"
  case packet = "r.packet"
  case type = "r.type"
  case chainBroken = "r.chain_broken"
  case receivedTime = "r.received_time"
  case createdTime = "r.created_time"
  case reportID = "r.report_id"
  case sum = "r.sum"
  case meta = "r.meta"
  case payloadBytes = "length(r.payload)"
  case payload = "r.payload"
  case context = "r.context"
}

extension StoredReport {
  /// - Parameter hasPayload: the row has the payload itself.
  /// - Parameter contexts: nil: they can't be read.
  /// - Returns: nil if the row names no packet.
  init?(
    checking row: SQLiteRow<ReportColumn>, _ stream: StreamID, type: String, hasPayload: Bool,
    _ contexts: ContextReader?
  ) throws(SQLiteError) {
    guard let packet = PacketID(bytes: row.bytes(.packet)) else { return nil }
    let head = PacketDatabase.ReportHead(
      stream: row.int64(.stream), packet: row.bytes(.packet), namespace: stream.namespace,
      chainIsBroken: row.bool(.chainBroken), receivedTime: row.int64(.receivedTime))
    self.init(
      id: row.int64(.id), device: stream.device, namespace: stream.namespace.text, kind: stream.kind.name,
      type: type, reportID: row.text(.reportID), createdTime: row.isNull(.createdTime) ? nil : row.int64(.createdTime),
      receivedTime: row.int64(.receivedTime), packetID: packet.description, chainIsBroken: head.chainIsBroken,
      meta: [], payloadBytes: row.isNull(.payloadBytes) ? nil : row.int(.payloadBytes), payload: nil)
    let context = row.integer(.context)
    let common = try context.flatMap { (id) throws(SQLiteError) in try contexts?.common(id) }
    var sum = Self.sum(row, head, self, common)
    isDamaged = !sum.isRest(of: row.int64(.sum))
    if hasPayload, payloadBytes != nil {
      sum.add(payload: row.blob(.payload))
      isDamaged = sum.value != row.int64(.sum)
      if !isDamaged { payload = row.bytes(.payload) }
    }
    if !isDamaged { meta = Self.whole(row.blob(.meta), common) }
  }

  private static func sum(
    _ row: SQLiteRow<ReportColumn>, _ head: PacketDatabase.ReportHead, _ report: StoredReport, _ common: [UInt8]?
  ) -> ReportSum {
    withText(row.blob(.meta), common) { text in
      ReportSum(
        head, id: report.id, type: row.int64(.type), created: report.createdTime, reportID: row.blob(.reportID),
        meta: text,
        payloadBytes: report.payloadBytes)
    }
  }

  private static func whole(_ own: UnsafeRawBufferPointer, _ common: [UInt8]?) -> [UInt8] {
    withText(own, common) { $0.whole }
  }

  private static func withText<Result>(
    _ own: UnsafeRawBufferPointer, _ common: [UInt8]?, _ body: (ReportText) -> Result
  ) -> Result {
    guard let common else { return body(ReportText(own: own)) }
    return common.withUnsafeBytes { body(ReportText(own: own, common: $0)) }
  }
}
