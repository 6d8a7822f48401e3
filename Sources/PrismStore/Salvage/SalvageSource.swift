import PrismProtocol
import PrismSQLite
import PrismSalvage

/// A damaged database of the store's: its whole records, and what was noted beside it.
final class SalvageSource {
  let database: DamagedDatabase
  /// nil if there is no such file, or if it is damaged too.
  let contents: TableOfContents?

  /// nil if the file can't be opened.
  init?(path: String) {
    contents = TableOfContents(path: path + TableOfContents.suffix)
    let known = KnownTables(required: ["facts", "namespaces", "ledger"], roots: contents?.roots)
    guard let database = DamagedDatabase(path: path, known) else { return nil }
    self.database = database
  }

  /// Above the number of every namespace that has a table.
  var namespaceEnd: Int {
    1 + (database.tables.compactMap { QueueID(table: $0)?.namespace }.max() ?? 0)
  }

  /// Delivered rows that are still in its tables, as far as its ledger can be read.
  var spent: [QueueID: IDRuns] {
    var spent: [QueueID: IDRuns] = [:]
    database.forEachRecord(of: "ledger") { record in
      guard let ledger = LedgerRecord(record.row(of: LedgerRecord.Column.self)) else { return }
      for run in ledger.segments.spent { spent[ledger.queue, default: IDRuns()].append(run) }
    }
    return spent
  }

  /// The rows of its packets in flight, as far as those can be read.
  var claimed: [QueueID: IDRuns] {
    var claimed: [QueueID: [IDRuns]] = [:]
    database.forEachRecord(of: "packets") { record in
      if let packet = PacketRecord(record.row(of: PacketRecord.Column.self)) {
        claimed[packet.queue, default: []].append(packet.members)
      }
    }
    return claimed.mapValues { IDRuns(union: $0) }
  }
}
