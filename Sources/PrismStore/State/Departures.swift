import PrismProtocol

/// The newest rows that left the store without a packet, for `trace`. They are in memory: another run of the daemon knows
/// nothing of them, and its ledger counts them still.
struct Departures {
  private static let runsMax = 16_384
  private static let keysMax = 4096

  private typealias Departure = (queue: QueueID, members: IDRuns, place: TracedRow.Place)
  private typealias Freed = (namespace: Int, key: String, row: Int64)

  private var departures: [Departure] = []
  private var runCount = 0
  private var freed: [Freed] = []

  mutating func add(_ members: IDRuns, _ queue: QueueID, to account: Ledger.Account, unixMilliseconds: Int64) {
    guard !members.isEmpty else { return }  // these would take room, and not be bounded
    departures.append((queue, members, .dropped(account, unixMilliseconds: unixMilliseconds)))
    runCount += members.runs.count
    guard runCount > Self.runsMax else { return }
    // Half of them at once, so that few steps move the others.
    var forgotten = 0
    while runCount > Self.runsMax / 2, forgotten < departures.count {
      runCount -= departures[forgotten].members.runs.count
      forgotten += 1
    }
    departures.removeFirst(forgotten)
  }

  /// A client's id is free again. - Parameter key: in the form of `ClientIDKey`.
  mutating func free(_ key: String, of row: Int64, _ namespace: Int) {
    if freed.count == Self.keysMax { freed.removeFirst(Self.keysMax / 2) }
    freed.append((namespace, key, row))
  }

  func rows(of reportID: String, _ namespace: Int) -> [(row: Int64, userID: UInt32?)] {
    freed.lazy.filter { $0.namespace == namespace && ClientIDKey.reportID($0.key) == reportID }
      .map { ($0.row, ClientIDKey.userID($0.key)) }
  }

  /// nil: nothing is known of the row.
  func place(of row: Int64, _ queue: QueueID) -> TracedRow.Place? {
    departures.last { $0.queue == queue && $0.members.run(of: row) != nil }?.place
  }
}
