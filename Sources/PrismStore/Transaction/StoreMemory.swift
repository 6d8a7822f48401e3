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

  init(_ opened: DatabaseOpening.Opened, _ options: StoreOptions) {
    (epoch, state, log) = (opened.epoch, opened.state, options.log)
    clock = StoreClock(time: options.time, bootID: options.bootID, book: opened.clocks, held: opened.held)
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
