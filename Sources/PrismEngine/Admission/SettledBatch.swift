public import PrismProtocol

/// A batch and what its commit did with it, as its connection is told.
public struct SettledBatch: Sendable {
  private let batch: ReportBatch
  private let ids: [RowID]
  private let epoch: [UInt8]
  let exceptions: [(row: Int, what: BatchOutcome.Exception)]
  /// Why none of it was taken.
  let failure: Refusal?

  public init(_ batch: ReportBatch, _ outcome: BatchOutcome) {
    (self.batch, ids, epoch) = (batch, outcome.ids, Array(outcome.epoch.utf8))
    (exceptions, failure) = (outcome.exceptions, nil)
  }

  public init(_ batch: ReportBatch, failure: Refusal) {
    (self.batch, ids, epoch, exceptions, self.failure) = (batch, [], [], [], failure)
  }

  var rowCount: Int { batch.rows.count }

  /// Refused rows by code.
  var refusals: [Refusal] {
    if let failure { return Array(repeating: failure, count: rowCount) }
    return exceptions.compactMap { if case .refused(let refusal) = $0.what { refusal } else { nil } }
  }

  /// One line a row.
  func render(
    _ rows: Range<Int>, exceptions: ArraySlice<(row: Int, what: BatchOutcome.Exception)>, into output: inout [UInt8]
  ) {
    if let failure {
      let line = AnswerText.refused(failure)
      for _ in rows { output.append(contentsOf: line) }
      return
    }
    var exceptions = exceptions
    for row in rows {
      let exception = exceptions.first?.row == row ? exceptions.removeFirst().what : nil
      switch exception {
      case .refused(let refusal): output.append(contentsOf: AnswerText.refused(refusal))
      case .duplicate: renderStored(row, isDuplicate: true, into: &output)
      case nil: renderStored(row, isDuplicate: false, into: &output)
      }
    }
  }

  private func renderStored(_ row: Int, isDuplicate: Bool, into output: inout [UInt8]) {
    AnswerText.appendStored(isDuplicate: isDuplicate, to: &output) { output in
      if let given = batch.rows[row].clientReportID {
        output.append(contentsOf: batch.arena[given])
      } else {
        ids[row].appendReportID(epoch: epoch, to: &output)
      }
    }
  }
}
