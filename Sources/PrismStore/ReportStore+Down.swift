public import PrismProtocol
import PrismSQLite

// Tables in step with the server's changes (docs/records.md).
extension ReportStore {
  /// Executes a page of operations, each once over restarts. Readers see all of the page or nothing of it.
  public func apply(_ page: DownPage, to target: DownTarget) throws(StoreError) -> DownOutcome {
    try write { (transaction) throws(SQLiteError) in try DownApplying(transaction, target).apply(page) }
  }

  /// Begins to take a whole table in, beside the one that programs read. - Returns: the number to go on with.
  public func beginTable(_ target: DownTarget) throws(StoreError) -> Int64 {
    try write { (transaction) throws(SQLiteError) in try DownStaging(transaction).begin(target) }
  }

  /// Writes some of its records. - Parameter sequence: of the answer's head.
  /// - Throws: `diskFull` also before the disk is: reports need the rest.
  /// - Returns: false if the store was opened again since it began: begin again.
  public func add(_ records: [DownRecord], sequence: Int64, to table: Int64) throws(StoreError) -> Bool {
    let bytes = records.reduce(0) { $0 + $1.fields.count + 128 }
    return try write(bytes: bytes) { (transaction) throws(SQLiteError) in
      try DownStaging(transaction).add(records, sequence: sequence, to: table)
    }
  }

  /// Swaps the table in, or merges it with this device's changes where both sides make some, in one transaction. Records that
  /// it does not have are deleted.
  /// - Parameter sequence: of the answer's head.
  public func finishTable(_ table: Int64, _ target: DownTarget, sequence: Int64) throws(StoreError) -> DownOutcome {
    try write { (transaction) throws(SQLiteError) in
      try DownStaging(transaction).finish(table, target, sequence: sequence)
    }
  }

  /// Gives up what was begun.
  public func dropTable(_ table: Int64) throws(StoreError) {
    try write { (transaction) throws(SQLiteError) in DownStaging(transaction).drop(table) }
  }

  /// Forgets tables that the server does not change any more, as the namespace declares its tables now.
  public func keepTables(_ tables: [RecordTable], of namespace: NamespaceName) throws(StoreError) {
    try write { (transaction) throws(SQLiteError) in DownStaging(transaction).keep(tables, of: namespace) }
  }

  /// Asks for all records of a table again: what is here does not go with what is there.
  public func forgetSequence(of table: RecordTableName, in namespace: NamespaceName) throws(StoreError) {
    try write { (transaction) throws(SQLiteError) in
      DownStaging(transaction).forgetSequence(of: table, in: namespace)
    }
  }

  // MARK: Stores

  /// Meets the store that answered. One that is another one, or that knows less than before, gets all records of this device
  /// again (`markRecords`), and nothing is deleted because it lacks it.
  public func recognize(
    _ store: StoreMark, knowsLess: Bool, missing: PacketID? = nil, in namespace: NamespaceName
  ) throws(StoreError) -> KnownStore.Change {
    try write { (transaction) throws(SQLiteError) in
      try StoreComparison(transaction, namespace).recognize(store, knowsLess: knowsLess, missing: missing)
    }
  }

  /// Marks some records to be sent again. - Parameter tables: as they are declared now. - Returns: whether more are to be marked.
  public func markRecords(_ tables: [RecordTable], of namespace: NamespaceName) throws(StoreError) -> Bool {
    try write { (transaction) throws(SQLiteError) in try StoreComparison(transaction, namespace).mark(tables) }
  }

  /// Takes the deletions of the store that answered last from now on: an operator says so.
  /// - Parameter expected: the store that the operator means; nil: the one that answered last.
  public func acceptStore(
    _ expected: StoreMark? = nil, of namespace: NamespaceName
  ) throws(StoreError) -> KnownStore.Acceptance {
    try write { (transaction) throws(SQLiteError) in try StoreComparison(transaction, namespace).accept(expected) }
  }

  /// The commands that are remembered, by their ids. Those that expire up to `forgottenThrough`, in milliseconds since 1970, may
  /// be forgotten.
  public func commandMarks(
    of namespace: NamespaceName
  ) throws(StoreError) -> (marks: [RecordID: CommandMark], forgottenThrough: Int64) {
    try read { (transaction) throws(SQLiteError) in
      let book = CommandBook(transaction)
      return (try book.marks(of: namespace), try book.forgottenThrough(namespace))
    }
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
    try write { (transaction) throws(SQLiteError) in
      let outcome = try CommandBook(transaction).write(step)
      if outcome == .written, let type = step.refused { try Ring(transaction).noteRefused(type, step.namespace) }
      return outcome
    }
  }

  /// Writes the device's own tags into its record. The same tags cost no write. - Returns: whether they wait for the server now.
  public func write(_ tags: DeviceTags, of namespace: NamespaceName) throws(StoreError) -> Bool {
    let request = RecordRequest(
      namespace: namespace, table: .tags, action: .put(DeviceTags.Source.device.id, tags.fields), bytes: 0)
    return try write { (transaction) throws(SQLiteError) in
      try RecordChanges(transaction).carryOut(request).hasChanged
    }
  }

  /// Forgets commands that are expired. - Parameter commands: no other one that expires as early begins from now on.
  public func forget(_ commands: [RecordID: CommandMark], of namespace: NamespaceName) throws(StoreError) {
    try write { (transaction) throws(SQLiteError) in try CommandBook(transaction).forget(commands, of: namespace) }
  }
}
