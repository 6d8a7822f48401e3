import PrismEngine
import PrismProtocol

extension IngestServer {
  /// What one commit takes: transactions of more rows are no faster, and everybody waits for them. Where several users
  /// wait, a commit is shorter, so that the next one comes soon.
  private static let commitMax = (rows: 4000, bytes: 4 * 1024 * 1024)
  private static let sharedCommitMax = (rows: 1000, bytes: 1024 * 1024)

  /// One commit after the other, as long as something waits.
  func commit() {
    guard !isCommitting else { return }
    collectBatches()
    guard !composer.isEmpty else { return }
    isCommitting = true
    let limit = composer.isShared ? Self.sharedCommitMax : Self.commitMax
    let entries = composer.take(rowsMax: limit.rows, bytesMax: limit.bytes)
    sink.append(entries.map(\.batch)) { outcome in
      self.loop.enter { self.assumeIsolated { $0.committed(entries, outcome) } }
    }
  }

  private func committed(_ entries: [CommitComposer.Entry], _ outcome: CommitOutcome) {
    settle(entries, outcome)
    isCommitting = false
    endRound()
  }

  private func collectBatches() {
    let ready = unsealed
    unsealed = []
    for id in ready {
      guard let connection = connections[id] else { continue }
      connection.isUnsealed = false
      for batch in connection.conversation?.takeBatches() ?? [] {
        composer.add(batch, connection: id, user: connection.userID)
      }
    }
  }

  private func settle(_ entries: [CommitComposer.Entry], _ outcome: CommitOutcome) {
    var touched: [Int] = []
    for (index, entry) in entries.enumerated() {
      guard let connection = connections[entry.connection] else { continue }
      switch outcome {
      case .committed(let batches):
        connection.conversation?.settle(index < batches.count ? batches[index] : nil, failure: nil)
      case .failed(let refusal): connection.conversation?.settle(nil, failure: refusal)
      }
      if touched.last != entry.connection { touched.append(entry.connection) }
    }
    for id in Set(touched).sorted() {
      guard let connection = connections[id] else { continue }
      connection.conversation?.flushAnswers()
      advance(connection)
    }
  }
}
