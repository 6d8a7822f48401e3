import PrismSQLite

/// One row of `reports`, with its checksum.
struct ReportRow: SQLiteRecord {
  enum Column: String, SQLiteColumn {
    case id, stream, packet, type
    case chainBroken = "chain_broken"
    case receivedTime = "received_time"
    case createdTime = "created_time"
    case reportID = "report_id"
    case sum, meta, payload
  }

  let report: StoredReport
  let head: PacketDatabase.ReportHead
  /// The number of its type.
  let type: Int64

  func bind(to insert: SQLiteInsert<Column>) {
    head.bind(to: insert)
    insert.bind(.id, report.id)
    insert.bind(.type, type)
    insert.bind(.createdTime, report.createdTime)
    insert.bind(.reportID, report.reportID)
    insert.bind(.sum, sum.value)
    insert.bind(.meta, String(decoding: report.meta, as: UTF8.self))
    insert.bind(.payload, report.payload)
  }

  private var sum: ReportSum {
    report.meta.withUnsafeBytes { meta in
      Array(report.reportID.utf8).withUnsafeBytes { reportID in
        var sum = ReportSum(
          head, id: report.id, type: type, created: report.createdTime, reportID: reportID, meta: meta,
          payloadBytes: report.payload?.count)
        (report.payload ?? []).withUnsafeBytes { sum.add(payload: $0) }
        return sum
      }
    }
  }
}

extension PacketDatabase.ReportHead {
  /// Binds what all reports of a packet have in common.
  func bind(to insert: SQLiteInsert<ReportRow.Column>) {
    insert.bind(.stream, stream)
    insert.bind(.packet, packet)
    insert.bind(.chainBroken, chainIsBroken)
    insert.bind(.receivedTime, receivedTime)
  }
}
