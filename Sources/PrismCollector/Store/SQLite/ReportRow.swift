import PrismSQLite

/// One row of `reports`, with its checksum.
struct ReportRow: SQLiteRecord {
  enum Column: String, SQLiteColumn {
    case id, stream, packet, type
    case chainBroken = "chain_broken"
    case receivedTime = "received_time"
    case createdTime = "created_time"
    case reportID = "report_id"
    case sum, meta, payload, context
  }

  let report: StoredReport
  let head: PacketDatabase.ReportHead
  /// The number of its type.
  let type: Int64
  /// The context whose members its meta ends with; nil: it has them itself.
  let context: StoredContext?

  func bind(to insert: SQLiteInsert<Column>) {
    insert.bind(.id, report.id)
    insert.bind(.stream, head.stream)
    insert.bind(.packet, head.packet)
    insert.bind(.chainBroken, head.chainIsBroken)
    insert.bind(.receivedTime, head.receivedTime)
    insert.bind(.type, type)
    insert.bind(.createdTime, report.createdTime)
    insert.bind(.reportID, report.reportID)
    insert.bind(.sum, sum.value)
    insert.bind(.meta, String(decoding: own, as: UTF8.self))
    insert.bind(.payload, report.payload)
    insert.bind(.context, context?.id)
  }

  private var own: [UInt8] {
    guard let context else { return report.meta }
    return report.meta.dropLast(context.common.count) + [UInt8(ascii: "}")]
  }

  private var sum: ReportSum {
    report.meta.withUnsafeBytes { meta in
      Array(report.reportID.utf8).withUnsafeBytes { reportID in
        var sum = ReportSum(
          head, id: report.id, type: type, created: report.createdTime, reportID: reportID,
          meta: ReportText(own: meta), payloadBytes: report.payload?.count)
        (report.payload ?? []).withUnsafeBytes { sum.add(payload: $0) }
        return sum
      }
    }
  }
}

extension PacketDatabase.ReportHead {
  /// Binds what all reports of a packet have in common, and copies nothing.
  /// - Parameter packet: the bytes of its id.
  func bind(to insert: SQLiteInsert<ReportRow.Column>, packet: UnsafeRawBufferPointer) {
    insert.bind(.stream, stream)
    insert.bind(.packet, uncopiedBlob: packet)
    insert.bind(.chainBroken, chainIsBroken)
    insert.bind(.receivedTime, receivedTime)
  }
}
