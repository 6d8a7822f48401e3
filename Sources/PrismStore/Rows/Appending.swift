import PrismProtocol
import PrismSQLite

/// Stores reports: one transaction for all batches that arrived since the last one (group commit).
struct Appending {
  private let transaction: StoreTransaction
  private let rules: [NamespaceName: ReportRules]

  private init(_ transaction: StoreTransaction, _ rules: [NamespaceName: ReportRules]) {
    (self.transaction, self.rules) = (transaction, rules)
  }

  /// Stores batches in one transaction, if the disk has room and the database is in its place.
  static func store(
    _ batches: [ReportBatch], notes: [BatchNote], rules: [NamespaceName: ReportRules],
    in file: DatabaseFile
  ) -> CommitOutcome {
    // Records are read on a full disk, too.
    if notes.isEmpty, batches.allSatisfy({ $0.record?.isReading == true }) { return read(batches, in: file) }
    if let refusal = file.refusal(for: batches.reduce(0) { $0 + $1.arena.count + ($1.record?.bytes ?? 0) }) {
      return .failed(refusal)
    }
    do {
      let outcomes = try file.write { (transaction) throws(SQLiteError) in
        let outcomes = try Appending(transaction, rules).store(batches)
        for note in notes where note.isDue(after: outcomes) {
          if let events = note.sessions {
            try HealthBook(transaction).add(events, mark: note.value, note.namespace)
          } else {
            try transaction.write(Note(namespace: note.namespace, key: note.key, value: note.value))
          }
        }
        return outcomes
      }
      // A commit to a file that is not in its place any more may be lost with the process.
      return file.restore() ? .committed(outcomes) : .failed(.storeDisplacedUnknown)
    } catch {
      return .failed(refusal(for: error))
    }
  }

  private static func read(_ batches: [ReportBatch], in file: DatabaseFile) -> CommitOutcome {
    do {
      let outcomes = try file.read { (transaction) throws(SQLiteError) in
        try Appending(transaction, [:]).store(batches)
      }
      return .committed(outcomes)
    } catch { return .failed(refusal(for: error)) }
  }

  private static func refusal(for error: StoreError) -> Refusal {
    switch error {
    case .uncertain:
      Refusal(
        .unknown, "the commit failed, and whether it holds is open: send it again under the same reportId",
        retryMilliseconds: 1000)
    case .diskFull: .diskIsFull
    case .locked, .newerVersion, .folder, .unavailable, .noSuchPacket:
      Refusal(.internal, "the store failed, the report was not taken: try again", retryMilliseconds: 1000)
    }
  }

  private func store(_ batches: [ReportBatch]) throws(SQLiteError) -> [BatchOutcome] {
    var outcomes: [BatchOutcome] = []
    outcomes.reserveCapacity(batches.count)
    while outcomes.count < batches.count {
      let batch = batches[outcomes.count]
      if let record = batch.record {
        var outcome = BatchOutcome(ids: [], epoch: transaction.memory.epoch.text)
        outcome.record = try RecordChanges(transaction, for: RowOwner(userID: batch.userID)).carryOut(record)
        outcomes.append(outcome)
      } else if let run = batch.run {
        outcomes += try store(run, batches[outcomes.count...].prefix(run.batchCount))
      } else {
        outcomes.append(try store(batch, ids: .each))
      }
    }
    return outcomes
  }

  private func store(
    _ run: ReportBatch.Run, _ batches: ArraySlice<ReportBatch>
  ) throws(SQLiteError) -> [BatchOutcome] {
    var ids = RowWriter.IDs.each
    switch try KnownRuns(transaction).use(of: run, batches) {
    case .stored: return batches.map { BatchOutcome(duplicatesOf: $0, epoch: transaction.memory.epoch.text) }
    case .storedByReport: break
    case .new: ids = .ofRun
    }
    var outcomes: [BatchOutcome] = []
    for batch in batches { outcomes.append(try store(batch, ids: ids)) }
    return outcomes
  }

  /// Stores a batch of the daemon's own as it is, within a transaction.
  static func store(_ batch: ReportBatch, in transaction: StoreTransaction) throws(SQLiteError) -> BatchOutcome {
    try Appending(transaction, [:]).store(batch, ids: .each)
  }

  private func store(_ given: ReportBatch, ids: RowWriter.IDs) throws(SQLiteError) -> BatchOutcome {
    let batch =
      try rules[given.namespace].map { (rules) throws(SQLiteError) in
        let enriched = try Enriching(transaction).enriched(given, by: rules.enrichments)
        return rules.countsHealth ? try Breadcrumbs(transaction).added(to: enriched) : enriched
      } ?? given
    let memory = transaction.memory
    let namespace = try transaction.number(of: batch.namespace)
    if let app = batch.app { try AppUpdates(transaction).note(app, userID: batch.userID, namespace) }
    let form = try RowWriter.Form(
      namespace: namespace, types: numbers(of: batch.types), context: contextUse(batch, namespace: namespace), ids: ids,
      hasMemory: makeRoom(for: batch, namespace),
      rules: batch.types.map {
        let ofParts = batch.context.reduces && !$0.isKept ? ReportReduction() : nil
        return rules[batch.namespace]?.reduction(of: $0.type) ?? ofParts
      })
    var writer = RowWriter(batch, form, transaction)
    writer.room = try Eviction(transaction).makeRoom(
      for: batch, namespace,
      bytes: memory.state.repeats.bytesNeeded(for: batch, namespace) - form.bytesInWindows(of: batch))
    try writer.writeAll(scratch: &memory.scratch)
    let numbers = memory.state.nextSequence..<writer.nextSequence
    memory.state.nextSequence = writer.nextSequence
    writer.filtering.counts.forgottenGroups = writer.reductions?.forgotten ?? 0
    writer.filtering.counts.forgottenIDs = try ClientIDBound(transaction).keep(batch.quota, namespace)
    try count(writer.filtering.counts, namespace)
    count(writer.leaving.metas, QueueID(namespace: namespace, kind: .meta))
    count(writer.leaving.payloads, QueueID(namespace: namespace, kind: .payload))
    let rings = [writer.kept, writer.keptInMemory].compactMap(\.self)
    for ring in rings { keep(ring, batch, form.types, writer.outcome, namespace) }
    if let rules = rules[batch.namespace], !rules.triggers.isEmpty || !rules.serverTypes.isEmpty {
      let triggers = rules.triggers + ServerTriggers(transaction).triggers(of: namespace, within: rules.serverTypes)
      writer.outcome.hasReleased = try Triggers(transaction, namespace).look(at: batch, writer.outcome, by: triggers)
    }
    if rules[batch.namespace]?.countsHealth == true { try HealthBook(transaction).count(batch, writer.outcome) }
    if let reductions = writer.reductions {
      try reductions.write()
      if try reductions.end() > 0 { writer.outcome.hasReleased = true }
    }
    for ring in rings {
      let bytesMax = ring.isInMemory ? batch.quota.memoryBytesMax : batch.quota.ringBytesMax
      try Ring(transaction).overwrite(ring.queues(namespace), bytesMax: bytesMax)
    }
    if memory.state.shares[namespace]?.isComplete == true {
      let bytes = writer.leaving.metas.bytes + writer.leaving.payloads.bytes
      memory.state.shares[namespace]!.add(bytes, to: RowOwner(userID: batch.userID), numbers)
    }
    return writer.outcome
  }

  /// Begins segments for the rows. - Returns: false: there is no place in memory.
  private func makeRoom(for batch: ReportBatch, _ namespace: Int) throws(SQLiteError) -> Bool {
    for queue in QueueID.all(of: namespace) {
      try Segments(transaction).makeRoom(queue)
      if batch.hasKeptTypes(inMemory: false) {
        try Ring(transaction).makeRoom(queue, bytesMax: batch.quota.ringBytesMax)
      }
    }
    return try MemoryRing(transaction).makeRoom(for: batch, namespace)
  }

  private func keep(
    _ kept: RowTarget, _ batch: ReportBatch, _ types: [Int64], _ outcome: BatchOutcome, _ namespace: Int
  ) {
    let ring = Ring(transaction)
    let hasIDs = batch.rows.contains { $0.clientReportID != nil }
    let rows = ring.reports(namespace) ? batch.keptRows(outcome, inMemory: kept.isInMemory) : nil
    for queue in kept.queues(namespace) {
      let written = queue.kind.hasPayload ? kept.payloads : kept.metas
      let counts = rows?.reduce(into: [Int64: RowCount]()) { counts, row in
        if queue.kind.hasPayload, row.payload == nil { return }
        let count = RowCount(rows: 1, bytes: row.metaBytes + (queue.kind.hasPayload ? row.payload?.count ?? 0 : 0))
        counts.merge([types[row.type]: count], uniquingKeysWith: +)
      }
      let owners = [RowOwner(userID: batch.userID): written.bytes]
      ring.count(written.rows, owners, counts, hasClientIDs: hasIDs, queue)
    }
  }

  /// Counts the reports that filters kept from a row.
  private func count(_ filtered: FilterCounts, _ namespace: Int) throws(SQLiteError) {
    guard filtered != FilterCounts() else { return }
    var sum = transaction.state.counts.filtered[namespace] ?? FilterCounts()
    sum.add(filtered)
    transaction.state.counts.filtered[namespace] = sum
    try transaction.write(sum.note, FilterCounts.key, namespace)
  }

  private func count(_ written: WrittenRows, _ queue: QueueID) {
    let memory = transaction.memory
    guard written.rows > 0 else {
      guard written.bytes != 0 else { return }
      memory.state[queue].bytes += written.bytes
      return transaction.touch(queue)
    }
    memory.state[queue].ledger.stored += written.rows
    memory.state[queue].ledger[.waiting] += written.rows
    memory.state[queue].bytes += written.bytes
    memory.state[queue].segments.addBytes(written.bytes)
    memory.state[queue].lastSequence = memory.state.nextSequence - 1
    transaction.touch(queue)
  }

  private func numbers(of types: [ReportBatch.RowType]) throws(SQLiteError) -> [Int64] {
    var numbers: [Int64] = []
    numbers.reserveCapacity(types.count)
    for type in types { numbers.append(try transaction.number(of: type.type)) }
    return numbers
  }

  /// The id of the batch's context in the database; 0 if it has no context; nil if each row carries the members itself.
  private func contextUse(_ batch: ReportBatch, namespace: Int) throws(SQLiteError) -> Int64? {
    if batch.context.members.isEmpty { return 0 }
    let memory = transaction.memory
    let use = memory.state.contexts.add(batch.rows.count, of: batch.context, namespace: namespace)
    guard use.id == nil, use.rows > ContextCache.ownRowsMax else { return use.id }
    let id = try insertContext(batch, namespace: namespace)
    memory.state.contexts.set(id: id, of: batch.context, namespace: namespace)
    return id
  }

  private func insertContext(_ batch: ReportBatch, namespace: Int) throws(SQLiteError) -> Int64 {
    let record = ContextRecord(
      id: transaction.memory.state.nextContext, namespace: namespace, members: batch.context.members,
      owner: RowOwner(userID: batch.userID))
    try transaction.statement(NameStatement.insertContext).run(inserting: record)
    transaction.memory.state.nextContext += 1
    return record.id
  }
}

extension ReportBatch {
  /// The rows that were stored in one of the rings.
  fileprivate func keptRows(_ outcome: BatchOutcome, inMemory: Bool) -> [Row] {
    let exceptions = Set(outcome.exceptions.map(\.row))
    return rows.indices.filter { index in
      let type = types[rows[index].type]
      return type.isKept && type.isInMemory == inMemory && !exceptions.contains(index)
    }.map { rows[$0] }
  }
}
