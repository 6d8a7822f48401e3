import PrismProtocol
import PrismSQLite

/// The runs that were stored (`ReportIDRun`), in `client_ids` beside the ids of reports: 24 h from their commit, and as long as
/// their first row is held. Their key is `PREFIX FIRST / COUNT : USER`: no report id has a slash.
struct KnownRuns: PlainOperations {
  /// The reports of a run are known
  enum Use {
    /// by nothing yet: all of them become rows, and are known by the run.
    case new
    /// each by its own id, if at all: some were refused, came before, or are counted on others.
    case storedByReport
    /// by the run.
    case stored
  }

  /// In place of the first row of a run whose reports are known one by one.
  private static let byReport: Int64 = -1

  let transaction: StoreTransaction

  /// Remembers the run if it is not known, in the transaction that is about to store it.
  /// - Parameter batches: all those of the run, at least one.
  func use(of run: ReportBatch.Run, _ batches: ArraySlice<ReportBatch>) throws(SQLiteError) -> Use {
    let batch = batches[batches.startIndex]
    let (namespace, owner) = (try transaction.number(of: batch.namespace), RowOwner(userID: batch.userID))
    let key = Self.key(run.ids, owner)
    if let row = try transaction.row(ofClientID: key, namespace) {
      return row == Self.byReport ? .storedByReport : .stored
    }
    // A run is known on the disk. The ids of reports in memory are there.
    if batches.contains(where: { $0.hasKeptTypes(inMemory: true) }) { return .storedByReport }
    let firstRow = try isNew(run, batches, namespace, owner) ? firstRow(of: batches) : nil
    try transaction.statement(ClientIDStatement.insertRun).run([
      ":namespace": namespace, ":key": key, ":row": firstRow?.value ?? Self.byReport, ":time": transaction.heldTime,
    ])
    let queue = QueueID(namespace: namespace, kind: .meta)
    state.clientIDs.known[queue]?.add(KnownIDs.bytes(ofKey: key.utf8.count), of: owner)
    return firstRow == nil ? .storedByReport : .new
  }

  /// Whether each report becomes a row, and no row is one of them.
  private func isNew(
    _ run: ReportBatch.Run, _ batches: ArraySlice<ReportBatch>, _ namespace: Int, _ owner: RowOwner
  ) throws(SQLiteError) -> Bool {
    guard run.isWhole, !transaction.memory.state.clientIDs.hasOwnerless, batches.allSatisfy({ $0.marks.isEmpty }) else {
      return false
    }
    // The version before runs has stored it, or a program that gives ids of this form.
    guard let first = run.ids.prefix.numbered(run.ids.first),
      try transaction.row(ofClientID: ClientIDKey.text(first.text, owner), namespace) == nil
    else { return false }
    let bytes = batches.reduce(0) { $0 + RepeatedRows.bytes(of: $1) }
    return try Eviction(transaction).makeRoom(for: batches[batches.startIndex], namespace, bytes: bytes).fits(bytes)
  }

  /// The row that the first report becomes; nil: the others do not follow it, because they are of several priorities.
  private func firstRow(of batches: ArraySlice<ReportBatch>) -> RowID? {
    let priorities = Set(batches.lazy.flatMap { $0.types.lazy.map(\.priority) })
    guard let priority = priorities.first, priorities.count == 1 else { return nil }
    return RowID(priority: priority, sequence: transaction.memory.state.nextSequence)
  }

  /// The row of a report of a run, for each user that handed it over.
  func rows(of reportID: String, _ namespace: Int) throws(SQLiteError) -> [(row: Int64, userID: UInt32?)] {
    let digits = reportID.reversed().prefix { $0.isASCII && $0.isNumber }.count
    guard let number = Int(reportID.suffix(digits)) else { return [] }
    var result: [(row: Int64, userID: UInt32?)] = []
    let prefix = String(reportID.dropLast(digits))
    let find = try transaction.statement(ClientIDStatement.runs).bind([":namespace": namespace, ":prefix": prefix])
    try find.forEachRow(of: ClientIDRecord.Column.self) { row in
      guard let known = ClientIDRecord(row), known.row != Self.byReport,
        let run = Self.numbers(known.key.dropFirst(prefix.count)), run.contains(number)
      else { return }
      result.append((known.row + Int64(number - run.lowerBound), ClientIDKey.userID(known.key)))
    }
    return result
  }

  private static func key(_ run: ReportIDRun, _ owner: RowOwner) -> String {
    ClientIDKey.text("\(run.prefix)\(run.first)/\(run.count)", owner)
  }

  /// Of the end of a key. - Returns: nil if it is the key of a report.
  private static func numbers(_ text: Substring) -> Range<Int>? {
    let parts = text.prefix { $0 != ":" }.split(separator: "/")
    guard parts.count == 2, let first = Int(parts[0]), let count = Int(parts[1]) else { return nil }
    return first..<first + count
  }
}
