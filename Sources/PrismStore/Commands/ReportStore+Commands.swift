public import PrismProtocol
import PrismSQLite

extension ReportStore {
  /// The commands that are remembered, by their ids.
  public func commandMarks(of namespace: NamespaceName) throws(StoreError) -> [RecordID: CommandMark] {
    try read { (transaction) throws(SQLiteError) in try CommandBook(transaction).marks(of: namespace) }
  }

  /// A page of the records of commands, by their ids. - Parameter after: the last id of the page before; nil for the first.
  public func commands(
    of namespace: NamespaceName, after: RecordID?
  ) throws(StoreError) -> (records: [StoredRecord], isMore: Bool) {
    let request = RecordRequest(
      namespace: namespace, table: .commands, action: .list(after: after, limit: RecordRequest.listMax), bytes: 0)
    let answer = try read { (transaction) throws(SQLiteError) in
      try RecordChanges(transaction).carryOut(request).answer
    }
    guard case .list(let records, _, let isMore) = answer else { return ([], false) }
    return (records, isMore)
  }

  /// Writes a step of a command down. - Throws: then nothing was written; or it may have been, if `uncertain`.
  public func write(_ step: CommandStep) throws(StoreError) -> CommandStep.Outcome {
    try write { (transaction) throws(SQLiteError) in try CommandBook(transaction).write(step) }
  }

  /// Writes the device's own tags into its record. The same tags cost no write. - Returns: whether they wait for the server now.
  public func write(_ tags: DeviceTags, of namespace: NamespaceName) throws(StoreError) -> Bool {
    let request = RecordRequest(
      namespace: namespace, table: .tags, action: .put(DeviceTags.Source.device.id, tags.fields), bytes: 0)
    return try write { (transaction) throws(SQLiteError) in
      try RecordChanges(transaction).carryOut(request).hasChanged
    }
  }

  /// Forgets commands that are expired.
  public func forget(_ commands: [RecordID], of namespace: NamespaceName) throws(StoreError) {
    try write { (transaction) throws(SQLiteError) in try CommandBook(transaction).forget(commands, of: namespace) }
  }
}
