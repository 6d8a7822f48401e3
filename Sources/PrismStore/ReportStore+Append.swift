import PrismProtocol

// Taking reports: one transaction for all the batches that have piled up since the last one (group commit).
extension ReportStore {
  /// Stores the rows of `batches`. Nothing of them is answered as stored before this returns `committed`.
  public func append(_ batches: [ReportBatch]) -> CommitOutcome {
    uses += 1
    if let refusal = refusalNow(for: batches.reduce(0) { $0 + $1.arena.count }) { return .failed(refusal) }
    do {
      let outcomes = try transaction { (database) throws(SQLiteError) in
        var outcomes: [BatchOutcome] = []
        outcomes.reserveCapacity(batches.count)
        for batch in batches { outcomes.append(try store(batch, database)) }
        return outcomes
      }
      // Never an answer for what stands in a file that nobody will find again.
      return bringHome() ? .committed(outcomes) : .failed(Self.displacedUnknown)
    } catch {
      return .failed(refusal(for: error))
    }
  }

  private func refusal(for failure: Failure) -> Refusal {
    if failure.isUncertain {
      return Refusal(
        .unknown, "the commit failed, and whether it holds is open: send it again under the same reportId",
        retryMilliseconds: 1000)
    }
    if failure.error.isDiskFull { return Self.diskFullRefusal }
    return Refusal(.internal, "the store failed, the report was not taken: try again", retryMilliseconds: 1000)
  }

  static let diskFullRefusal = Refusal(
    .diskFull, "no space left on the daemon's disk, the report was not taken", retryMilliseconds: 2000)

  private func store(_ batch: ReportBatch, _ database: StoreDatabase) throws(SQLiteError) -> BatchOutcome {
    let namespace = try number(of: batch.namespace, database)
    var writer = try RowWriter(
      batch: batch, epoch: epoch, namespace: namespace, types: numbers(of: batch.types, database),
      context: contextUse(batch, namespace: namespace, database), firstSequence: state.nextSequence,
      newestCreated: (
        state[QueueID(namespace: namespace, kind: .meta)].newestCreated,
        state[QueueID(namespace: namespace, kind: .payload)].newestCreated
      ), hasOwnerlessIDs: state.hasOwnerlessIDs, database: database)
    writer.room = try makeRoom(for: batch, namespace: namespace, database)
    try writer.writeAll(database, scratch: &scratch)
    state.nextSequence = writer.nextSequence
    count(writer, kind: .meta, namespace)
    count(writer, kind: .payload, namespace)
    if state.shares[namespace]?.isComplete == true {
      state.shares[namespace]!.add(writer.metas.bytes + writer.payloads.bytes, to: RowOwner(userID: batch.userID))
    }
    return writer.outcome
  }

  private func count(_ writer: RowWriter, kind: ReportKind, _ namespace: Int) {
    let written = kind == .meta ? writer.metas : writer.payloads
    guard written.rows > 0 else { return }
    let queue = QueueID(namespace: namespace, kind: kind)
    state[queue].ledger.stored += written.rows
    state[queue].ledger[.waiting] += written.rows
    state[queue].bytes += written.bytes
    state[queue].lastSequence = state.nextSequence - 1
    state[queue].newestCreated = written.newestCreated
    touched.insert(queue)
  }

  // MARK: Names and contexts become numbers

  /// The namespace's number; its tables and its part of the views are made with its first report.
  func number(of namespace: NamespaceName, _ database: StoreDatabase) throws(SQLiteError) -> Int {
    if let number = state.number(of: namespace) { return number }
    let number = state.nextNamespace
    state.add(namespace, number: number)
    hasNewNames = true
    try QueueID.create(number, among: state.namespaces, database.connection)
    if let policy = policies[namespace] { try remember(policy, number, database) }
    return number
  }

  private func numbers(of types: [ReportBatch.RowType], _ database: StoreDatabase) throws(SQLiteError) -> [Int64] {
    var numbers: [Int64] = []
    numbers.reserveCapacity(types.count)
    for type in types {
      if let number = state.number(of: type.type) {
        numbers.append(number)
        continue
      }
      let number = state.nextType
      let insert = try database.statement(.insertType)
      insert.bind(1, number)
      insert.bind(2, type.type.text)
      insert.bind(3, RowSum.ofName(type.type.text, number: number, in: "types"))
      try insert.run()
      state.add(type.type, number: number)
      hasNewNames = true
      numbers.append(number)
    }
    return numbers
  }

  /// The id of the batch's context in the database; 0 where there is none to splice in; nil where each row of the batch
  /// carries it itself.
  private func contextUse(_ batch: ReportBatch, namespace: Int, _ database: StoreDatabase) throws(SQLiteError) -> Int64?
  {
    if batch.context.members.isEmpty { return 0 }
    var use = contexts.use(of: batch.context, namespace: namespace)
    use.rows += batch.rows.count
    if use.id == nil && use.rows > ContextCache.ownRowsMax {
      use.id = try insertContext(batch, namespace: namespace, database)
    }
    contexts.set(use, of: batch.context)
    return use.id
  }

  private func insertContext(_ batch: ReportBatch, namespace: Int, _ database: StoreDatabase) throws(SQLiteError)
    -> Int64
  {
    let id = state.nextContext
    let context = ContextCache.Stored(members: batch.context.members, owner: RowOwner(userID: batch.userID))
    let insert = try database.statement(.insertContext)
    insert.bind(1, id)
    insert.bind(2, namespace)
    // What it is used for is known in memory, and written when it ends.
    insert.bind(3, Int64.max)
    insert.bind(4, Self.checksum(ofContext: id, namespace: namespace, context))
    insert.bind(5, context.members)
    insert.bind(6, context.owner.number)
    try insert.run()
    state.nextContext += 1
    return id
  }
}
