/// The result of one commit, for the batches handed to it.
public enum CommitOutcome: Sendable {
  /// Committed as `durability` says; one outcome a batch, in their order.
  case committed([BatchOutcome])
  /// Nothing of it was taken, or (`unknown`) that is not known: every report of it is answered with this.
  case failed(Refusal)
}

/// The result of a commit for one batch.
public struct BatchOutcome: Sendable {
  /// One id a row, in their order; meaningless where `exceptions` names the row as refused.
  public var ids: [RowID]
  /// Of the database that took them: with a row's id it makes the report id that is answered (`RowID.reportID`). It
  /// comes with every outcome, because a database that had to be replaced while the daemon runs has another one.
  public var epoch: String
  /// Rows that were not simply stored, by index, ascending; empty in the ordinary case.
  public var exceptions: [(row: Int, what: Exception)] = []
  /// Reports of it let kept ones go.
  public var hasReleased = false
  /// Of a request about records.
  public var record: RecordOutcome?

  /// A report of the batch with an answer other than `stored`.
  public enum Exception: Sendable, Equatable {
    /// The client's id is known: the report is stored once (now or before).
    case duplicate
    /// Counted on the row of an equal report, which `ids` has in its place. - Parameter reportID: that the client of that
    /// report gave; nil: it is made of the row's.
    case collapsed(reportID: [UInt8]?)
    /// Left out by the type's `sample`, and counted.
    case sampledOut
    /// `store_full`.
    case refused(Refusal)
  }

  public init(ids: [RowID], epoch: String) { (self.ids, self.epoch) = (ids, epoch) }

  /// Each report of the batch was stored before.
  public init(duplicatesOf batch: ReportBatch, epoch: String) {
    self.init(ids: Array(repeating: RowID(value: 0), count: batch.rows.count), epoch: epoch)
    exceptions = batch.rows.indices.map { ($0, .duplicate) }
  }
}
