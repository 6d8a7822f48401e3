/// The readers of `collector.db`, each with a connection and a queue of its own.
struct SQLiteReaders: Sendable {
  let damage = DamageReports()
  let reports: ReportReader
  let page: SQLiteQueries
  let records: SQLiteRecordReader

  init(path: String, vfs: String?) {
    reports = ReportReader(path: path, vfs: vfs)
    page = SQLiteQueries(path: path, vfs: vfs, damage)
    records = SQLiteRecordReader(path: path, vfs: vfs)
  }

  /// The file is about to be moved, or the store ends.
  func closeLater() {
    reports.closeLater()
    page.closeLater()
    records.closeLater()
  }
}
