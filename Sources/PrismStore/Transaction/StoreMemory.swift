import PrismBase
import PrismProtocol

/// The state that the store keeps in memory while its database is open.
final class StoreMemory {
  let epoch: Epoch
  let log: Logger
  var state: StoreState
  var policies = PolicyState()
  var deliveries = UnwrittenDeliveries()
  var enrichments = EnrichmentCache()
  var salvage = SalvageWork()
  var clock: StoreClock
  /// A body together with its context, while it is being bound; kept so that it is allocated once.
  var scratch: [UInt8] = []
  /// Gets the changes of each commit that changed records, whichever side made them.
  var onRecordChange: (([RecordTableChange]) -> Void)?

  // Of the open transaction
  /// Queues whose ledger it changed.
  var touched: Set<QueueID> = []
  /// It gave a number to a name, or made a table.
  var hasNewNames = false

  init(_ epoch: Epoch, _ state: StoreState, _ clock: StoreClock, log: Logger) {
    (self.epoch, self.state, self.clock, self.log) = (epoch, state, clock, log)
    held.note(state.nextSequence, time.uptime)
  }

  var time: any TimeSource { clock.time }
  var held: HeldClock {
    get { clock.held }
    _modify { yield &clock.held }
  }

  /// The database was opened again: its state counts.
  func reopened(_ state: StoreState) {
    self.state = state
    clock.forgetWritten()
    salvage.forgetFiles()
  }

  /// Rows left without a packet.
  func noteDeparture(of members: IDRuns, _ queue: QueueID, to account: Ledger.Account) {
    policies.departures.add(members, queue, to: account, unixMilliseconds: time.unixMilliseconds)
  }

  /// A transaction is committed.
  func announceChanges() {
    held.note(state.nextSequence, time.uptime)
    let changes = state.records.takeChanges(state.names)
    if !changes.isEmpty { onRecordChange?(changes) }
  }

  /// The database is another one than before: programs read their tables again.
  func announceAllTables() {
    let changes = state.records.changes(state.names)
    if !changes.isEmpty { onRecordChange?(changes) }
  }
}

/// The configuration's policies for stored rows, and what they did, by namespace.
struct PolicyState {
  struct Dropped {
    var rows = 0
    var oldestSequence: Int64 = .max

    static func += (sum: inout Dropped, more: Dropped) {
      sum.rows += more.rows
      sum.oldestSequence = min(sum.oldestSequence, more.oldestSequence)
    }
  }

  var all: [NamespaceName: RetentionPolicy] = [:]
  /// Expiries that are not complete yet.
  var expiring: [NamespaceName: Dropped] = [:]
  /// The last one that was complete.
  var expiries: [NamespaceName: Expiry] = [:]
  /// Rows of windows that ended while no report came, since the start (`reduce`).
  var windowsEnded = 0
  var departures = Departures()
}

/// Deliveries that are not in the database yet. A kill loses them: then `trace` knows nothing of these packets.
struct UnwrittenDeliveries {
  /// Each would write a page of its own: with a trickle of reports a fifth of all that is written.
  static let countMax = 8
  static let millisecondsMax: Int64 = 60_000

  var records: [DeliveryRecord] = []
  /// The packet up to which the old ones are forgotten; empty: the walk begins when `nextWalk` has come.
  private var walked: [UInt8] = []
  private var nextWalk = Int64.min

  /// - Returns: nil while no walk is due.
  func placeOfWalk(_ now: Int64) -> [UInt8]? { walked.isEmpty && now < nextWalk ? nil : walked }

  mutating func walked(to place: [UInt8]?, _ now: Int64) {
    walked = place ?? []
    if place == nil { nextWalk = now + 3_600_000 }
  }

  func isDue(heldTime: Int64) -> Bool {
    records.first.map { $0.heldTime < heldTime - Self.millisecondsMax } ?? false
  }
}

/// Fields of records that reports were given last, and counts since the start.
struct EnrichmentCache {
  struct Key: Hashable {
    let content: Int64
    let by: String?
    let value: String
    let fields: [String]
  }

  /// Of all entries, whose fields may have 10 KiB each.
  private static let (entriesMax, bytesMax) = (1000, 512 * 1024)

  private var entries: [Key: (fields: [UInt8], generation: Int64)] = [:]
  private(set) var bytes = 0
  var added: [NamespaceName: Int] = [:]
  var missing: [NamespaceName: Int] = [:]

  /// - Parameter generation: of the table: an entry of another one may be of another record.
  func find(_ key: Key, generation: Int64) -> [UInt8]? {
    entries[key].flatMap { $0.generation == generation ? $0.fields : nil }
  }

  mutating func add(_ fields: [UInt8], _ key: Key, generation: Int64) {
    bytes += fields.count - (entries[key]?.fields.count ?? 0)
    if entries.count >= Self.entriesMax || bytes > Self.bytesMax { (entries, bytes) = ([:], fields.count) }
    entries[key] = (fields, generation)
  }
}

/// The state of the salvage that is kept in memory between two slices.
struct SalvageWork {
  var source: (name: String, database: SalvageSource)?
  /// Rows that were brought over with their packets, and may have left since.
  var claimed: [QueueID: IDRuns] = [:]
  /// Rows that the file itself says were delivered.
  var spent: [QueueID: IDRuns] = [:]
  /// Rows that were delivered. nil: not read yet.
  var delivered: [QueueID: IDRuns]?
  /// Rows that were not found, since the last time that no file was left to be read.
  var lostRows = 0
  /// `client_ids` was searched for ids of unknown users in this run.
  var hasLookedForOwnerlessIDs = false

  /// Forgets what was read: the files may be others now.
  mutating func forgetFiles() { (source, delivered) = (nil, nil) }

  /// - Returns: nil if the file can't be opened.
  mutating func open(_ name: String, in folder: String) -> SalvageSource? {
    if let source, source.name == name { return source.database }
    (source, claimed, spent) = (nil, [:], [:])
    guard let opened = SalvageSource(path: folder + "/" + name) else { return nil }
    (source, claimed, spent) = ((name, opened), opened.claimed, opened.spent)
    return opened
  }
}
