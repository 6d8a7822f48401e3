import PrismAdmission
import PrismProtocol

extension IngestServer {
  /// One commit after the other, as long as something waits.
  func commit() {
    guard !isUnderWay.commit else { return }
    collectBatches()
    guard !composer.isEmpty || sessions.isDue else { return }
    isUnderWay.commit = true
    let hasContention = composer.isShared || connections.count > 1 || budget.usersConnected > 1
    let entries = composer.takeNext(hasContention: hasContention)
    let (batches, notes) = entries.forOneCommit
    let isLarge = entries.contains(where: \.isOfStream) || batches.reduce(0) { $0 + $1.rows.count } >= 500
    if hasContention && isLarge { sink.noteContention() }
    // Records are read on a full disk, too: nothing is written with them.
    let isWriting = batches.isEmpty || batches.contains { $0.record?.isReading != true }
    let events = isWriting ? sessions.takeNotes(rules.sessionNamespaces) : []
    sink.append(batches, notes: notes + events) { outcome in
      self.loop.enter(mayWait: isLarge) { self.assumeIsolated { $0.committed(entries, outcome, hasEvents: isWriting) } }
    }
  }

  private func committed(_ entries: [CommitComposer.Entry], _ outcome: CommitOutcome, hasEvents: Bool) {
    if hasEvents, case .committed = outcome { sessions.settle() }
    settle(entries, outcome)
    isUnderWay.commit = false
    endRound()
  }

  private func collectBatches() {
    let ready = unsealed
    unsealed = []
    for id in ready {
      guard let connection = connections[id] else { continue }
      connection.isUnsealed = false
      for batch in connection.conversation?.value.takeBatches() ?? [] {
        composer.add(batch, connection: id, user: connection.userID)
      }
    }
  }

  private func settle(_ entries: [CommitComposer.Entry], _ outcome: CommitOutcome) {
    var touched: [Int] = []
    var (outcomes, failure): (ArraySlice<BatchOutcome>, Refusal?) = ([], nil)
    switch outcome {
    case .committed(let batches): outcomes = batches[...]
    case .failed(let refusal): failure = refusal
    }
    for entry in entries {
      let own = outcomes.prefix(entry.batches.count)
      outcomes = outcomes.dropFirst(entry.batches.count)
      guard let connection = connections[entry.connection] else {
        settleGroup(entry.connection, own, failure)
        continue
      }
      connection.conversation?.value.settle(own.first, failure: failure)
      if touched.last != entry.connection { touched.append(entry.connection) }
    }
    var last = Self.listenerID
    for id in touched.sorted() where id != last {
      last = id
      guard let connection = connections[id] else { continue }
      connection.conversation?.value.flushAnswers()
      advance(connection)
    }
  }
}

extension [CommitComposer.Entry] {
  /// The batches of all of them in their order, and each note with the batches that it belongs to.
  fileprivate var forOneCommit: (batches: [ReportBatch], notes: [BatchNote]) {
    var (batches, notes): ([ReportBatch], [BatchNote]) = ([], [])
    for entry in self {
      let range = batches.count..<batches.count + entry.batches.count
      batches += entry.batches
      guard var note = entry.note else { continue }
      note.batches = range
      notes.append(note)
    }
    return (batches, notes)
  }
}
