/// The readers of `collector.db`, each with a connection and a queue of its own.
struct SQLiteReaders: Sendable {
  let damage: DamageReports
  /// Of whole reports and outputs, of the page's counts, of blocks that are merged.
  let reports: SQLiteReader, page: SQLiteReader, merging: SQLiteReader
  let records: SQLiteRecordReader

  init(path: String, vfs: String?) {
    let damage = DamageReports()
    self.damage = damage
    reports = SQLiteReader(path: path, vfs: vfs, damage)
    page = SQLiteReader(path: path, vfs: vfs, label: "queries", damage)
    merging = SQLiteReader(path: path, vfs: vfs, label: "merging", damage)
    records = SQLiteRecordReader(path: path, vfs: vfs)
  }

  /// The file is about to be moved.
  func closeLater() {
    for reader in [reports, page, merging] { reader.closeLater() }
    records.closeLater()
  }

  /// The store ends.
  func close() async {
    for reader in [reports, page, merging] { await reader.close() }
    records.closeLater()
  }
}
