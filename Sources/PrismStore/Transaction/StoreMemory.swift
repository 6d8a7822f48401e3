import PrismBase
import PrismProtocol

/// The state that the store keeps in memory while its database is open.
final class StoreMemory {
  let epoch: Epoch
  let log: Logger
  var state: StoreState
  /// The configuration's policy for stored rows, by namespace.
  var policies: [NamespaceName: RetentionPolicy] = [:]
  var deliveries = UnwrittenDeliveries()
  var enrichments = EnrichmentCache()
  var salvage = SalvageWork()
  var clock: StoreClock
  var held: HeldClock
  /// Rows of a namespace whose expiry is not complete yet.
  var expiring: [NamespaceName: Retention.Dropped] = [:]
  var expiries: [NamespaceName: Expiry] = [:]
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
    clock = StoreClock(time: options.time, bootID: options.bootID, book: opened.clocks)
    held = opened.held
    held.note(state.nextSequence, time.uptime)
  }

  var time: any TimeSource { clock.time }

  /// The database was opened again: its state counts.
  func reopened(_ state: StoreState) {
    self.state = state
    clock.book.needsWriting = true
    held.forgetWritten()
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
