import PrismProtocol
import PrismStore

/// One question for a table's changes.
struct TablePull: Sendable {
  var settings: PipelineSettings
  var table: RecordTable
  /// As the store knows it; nil: all records are asked for.
  var after: Int64?
  /// The last packet of records that was accepted.
  var lastPacket: PacketID?
  var holdsRecords = false
  /// This device's operations on the table that have had their answer.
  var settledBefore = 0
  /// All other tables have executed what the server did up to this number.
  var othersThrough: Int64
  /// Of the answer, on metered networks the rest of the budget.
  var bytesMax: Int
}

struct PullResult: Sendable {
  enum Verdict: Sendable, Equatable {
    /// The answer was executed as far as it could be. - Parameter sequence: the newest number in it.
    case applied(DownOutcome, sequence: Int64)
    /// The store is not the one that answered before, or knows less: the table is to be asked for again.
    case storeChanged(KnownStore.Change)
    case failed(PullFailure)
  }

  var verdict: Verdict
  /// On the wire, headers included; they count on metered networks.
  var bytes = 0
  /// From the question to the answer's end.
  var isWholeTable = false
}

/// Why a table could not be brought up to date.
struct PullFailure: Error, Sendable, Equatable {
  enum Reach: Sendable, Equatable {
    /// Another table may succeed.
    case table
    /// The collector, the way there, or the store.
    case all
    /// A fault of configuration, here or there.
    case configuration
  }

  /// For the log, `status` and `prismctl`.
  var cause: String
  var reach: Reach
  /// The pause that the collector asks for.
  var retryAfter: Duration?
  /// The next question is for all records: what is here does not go with what is there.
  var asksForAll = false
}
