import Dispatch
import PrismBase
public import PrismProtocol
import PrismRecovery
import PrismSQLite

/// The reports that were taken and have not left, on disk: `STATE/prism.db`, one SQLite database behind one serial queue
/// (docs/store.md).
///
/// A report that was answered as stored survives a `kill -9`, and a power loss if `durability` is full. The ledger's identity
/// holds after every transaction. After a failure of the disk the file and what is known in memory are read again.
public actor ReportStore {
  nonisolated let executor: DispatchQueueExecutor
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// 20 hexadecimal digits that name this database: part of every report id that it makes, and of `Prism-Ledger`.
  public nonisolated let epoch: String
  /// Clients that wait for one another.
  public nonisolated let contention: ClientContention
  private nonisolated let healthState: HealthState
  private let file: DatabaseFile
  /// The last run did not end in order: the file is checked once the store serves.
  private var wantsCheck: Bool
  /// Calls that reports came or left by; a change says that the store is in use.
  public private(set) var uses = 0

  private init(_ executor: DispatchQueueExecutor, _ file: sending DatabaseFile, wantsCheck: Bool) {
    (epoch, healthState, contention) = (file.memory.epoch.text, file.health, file.contention)
    (self.executor, self.file, self.wantsCheck) = (executor, file, wantsCheck)
  }

  /// Takes the folder for this process, opens the database or makes a new one, and brings it to the newest version. A
  /// damaged one is set aside, and its whole records are brought over: packets at once, waiting rows by `maintain`.
  /// - Throws: `locked`, `newerVersion`, `folder`, `diskFull`, `unavailable`.
  public static func open(_ options: StoreOptions) async throws(StoreError) -> ReportStore {
    let executor = DispatchQueueExecutor(label: "prism.store")
    let result: Result<ReportStore, StoreError> = await withCheckedContinuation { continuation in
      executor.queue.async {
        continuation.resume(
          returning: Result { () throws(StoreError) in
            let (file, wasClean) = try DatabaseFile.open(options)
            return ReportStore(executor, file, wantsCheck: !wasClean)
          })
      }
    }
    return try result.get()
  }

  /// Tells how the store is, at once, also while it is busy.
  public nonisolated var health: StoreHealth { healthState.current }

  /// Shows people no more that databases were set aside. - Returns: whether it did.
  public nonisolated func acknowledge() -> Bool { healthState.acknowledge() }

  /// Marks that the program serves: crashes from now on are not the database's fault. After a run that did not end in
  /// order the file is checked, while the store works. - Returns: a task that ends with the check; nil if no check is
  /// needed.
  @discardableResult public func markReady() -> Task<Void, Never>? {
    file.marker.ready()
    guard wantsCheck else { return nil }
    wantsCheck = false
    return Task { if let fault = try? await faults(max: 1).first { file.isFound(damagedBy: fault) } }
  }

  /// Reads the whole file over a connection and on a queue of its own: reports are taken and sent meanwhile.
  /// - Returns: what is wrong with it, at most 5 faults; empty: it is sound. - Throws: `unavailable` if it can't be read.
  public func check() async throws(StoreError) -> [String] { try await faults(max: 5) }

  private func faults(max: Int) async throws(StoreError) -> [String] {
    // Over a connection of its own.
    let check = IntegrityCheck(path: file.options.databasePath, vfs: file.options.vfs, faultsMax: max)
    do { return try await check.runInBackground().get() } catch { throw .unavailable(error.description) }
  }

  /// Sets what an answer promises from now on. - Throws: `unavailable` if the file can't be opened again.
  public func set(_ durability: StoreOptions.Durability) throws(StoreError) { try file.set(durability) }
  /// Closes the database after a checkpoint. Later calls open it again.
  public func close() { file.close() }

  /// Stores the rows of `batches` and those of `notes` that are due. Nothing of them is answered as stored before this
  /// returns `committed`.
  /// - Parameter rules: fields of records that reports of a namespace get, and its triggers.
  public func append(
    _ batches: [ReportBatch], notes: [BatchNote] = [], rules: [NamespaceName: ReportRules] = [:]
  ) -> CommitOutcome {
    uses += 1
    return use { (file) throws(Never) in Appending.store(batches, notes: notes, rules: rules, in: file) }
  }

  /// The same in turn on the store's queue, without an extra task hop.
  /// - Parameter rules: asked for when it is the batches' turn.
  /// - Parameter whenDone: called on that queue, with the time that it took.
  public nonisolated func append(
    _ batches: [ReportBatch], notes: [BatchNote], rules: @escaping @Sendable () -> [NamespaceName: ReportRules],
    whenDone: @escaping @Sendable (CommitOutcome, Duration) -> Void
  ) {
    executor.queue.async {
      self.assumeIsolated { store in
        let began = store.file.options.time.uptime
        let outcome = store.append(batches, notes: notes, rules: rules())
        whenDone(outcome, store.file.options.time.uptime - began)
      }
    }
  }

  /// Commits dispositions in their order, then notes, then claims. A claim's packet is nil if nothing waits for it, or if
  /// older rows are still to be brought over from a damaged database. - Throws: then nothing was done; or all, if `uncertain`.
  public func turn(_ turn: UploadCommit) throws(StoreError) -> [ClaimedPacket?] {
    uses += 1
    return try write { (transaction) throws(SQLiteError) in try Settlement(transaction).carryOut(turn) }
  }

  /// Reads the rows of a packet in flight again: the same plaintext, but for rows that were damaged meanwhile.
  /// - Returns: nil if there is no such packet, or if it has no whole row (then it is gone).
  public func read(_ id: PacketID) throws(StoreError) -> ClaimedPacket? {
    if state.records.find(id) != nil {
      return try read { (transaction) throws(SQLiteError) in try RecordPackets(transaction).read(id) }
    }
    let found = try read { (transaction) throws(SQLiteError) in try Claims(transaction).read(id) }
    guard let found, found.isDamaged else { return found?.packet }
    return try write { (transaction) throws(SQLiteError) in try Claims(transaction).repair(found) }
  }

  /// Does one slice of a few milliseconds of what falls due. - Returns: whether there is more to do at once.
  /// - Parameter isIdle: the store was not used since the last slice.
  public func maintain(isIdle: Bool = true) throws(StoreError) -> Bool {
    try use { (file) throws(StoreError) in try Maintenance(file).slice(isIdle: isIdle) }
  }

  /// Takes what the configuration says of stored rows: clears what another `appVersion` stored, drops payloads over the new
  /// limit (`removed`), and remembers the policies for `maintain`. Rows of namespaces without one expire as they would have.
  public func apply(_ policies: [NamespaceName: RetentionPolicy]) throws(StoreError) {
    try use { (file) throws(StoreError) in try RetentionPolicies(file).apply(policies) }
  }

  /// Tells what a policy would do to the stored rows. Nothing of it stays, and nothing is written to the disk.
  public func dryRun(
    _ policy: RetentionPolicy, quota: StoreQuota, of namespace: NamespaceName
  ) throws(StoreError) -> RetentionEffects {
    try read { (transaction) throws(SQLiteError) in try DryRun(transaction).run(policy, quota, namespace) }
  }

  /// - Returns: how many reports were removed (with their payloads), counted as `removed`.
  public func remove(_ selection: RemovalSelection, of namespace: NamespaceName) throws(StoreError) -> Int {
    try use { (file) throws(StoreError) in try Removal.remove(selection, of: namespace, in: file) }
  }

  /// Lets dead letters wait again in their old place. One that is not what was written counts as corrupt.
  public func requeue(_ selection: DeadLetterSelection) throws(StoreError) -> Int {
    try write { (transaction) throws(SQLiteError) in try DeadLetters(transaction).requeue(selection) }
  }

  /// Gives dead letters up; they count as removed. - Returns: how many.
  public func drop(_ selection: DeadLetterSelection) throws(StoreError) -> Int {
    try write { (transaction) throws(SQLiteError) in try DeadLetters(transaction).drop(selection) }
  }

  /// The state in memory as of the last commit. Touches no disk.
  var state: StoreState { file.memory.state }
  /// Of the database and its log.
  public func storeBytes() -> Int { file.options.place.bytesWithLog }
  /// Of every namespace that ever stored something.
  public func namespaces() -> [NamespaceName] { state.names.namespaces.values.sorted() }

  /// Packets whose rows are claimed, in the order of sending: these are sent first after a start.
  public func inFlight(_ namespace: NamespaceName, _ kind: RowKind) throws(StoreError) -> [PacketInFlight] {
    _ = file.memory.clock.read()
    let clocks = file.memory.clock.book
    guard kind.isReport else { return records.inFlight(namespace, clocks) }
    return state.queue(namespace, kind).map { state[$0].packets.map { PacketInFlight($0, clocks) } } ?? []
  }

  /// Whether a claim may find something.
  public func hasWaiting(_ namespace: NamespaceName, _ kind: RowKind) -> Bool {
    kind.isReport ? state.hasWaiting(namespace, kind) : records.hasWaiting(namespace)
  }

  /// The last packet of this namespace and kind that was accepted; nil before the first.
  public func lastAccepted(_ namespace: NamespaceName, _ kind: RowKind) throws(StoreError) -> PacketID? {
    guard kind.isReport else { return try note(namespace, RecordPackets.acceptedKey).flatMap { PacketID(bytes: $0) } }
    return state.queue(namespace, kind).flatMap { state[$0].lastAccepted }
  }

  /// - Parameter observer: called on the store's queue after each commit that changed records, before its caller goes on.
  public func observeRecords(_ observer: @escaping @Sendable ([RecordTableChange]) -> Void) {
    file.memory.onRecordChange = observer
  }

  /// Reports that got fields of a record since the start, and those whose record is not there, by namespace.
  public var enrichments: (added: [NamespaceName: Int], missing: [NamespaceName: Int]) {
    (file.memory.enrichments.added, file.memory.enrichments.missing)
  }

  /// The counts of the triggers of each namespace, by their names, as of the last commit.
  public var triggers: [NamespaceName: [String: TriggerState]] {
    var result: [NamespaceName: [String: TriggerState]] = [:]
    for (number, states) in state.counts.triggers { state.names.namespaces[number].map { result[$0] = states } }
    return result
  }

  /// Rows of windows that `maintain` ended, since the start.
  public var windowsEnded: Int { file.memory.policies.windowsEnded }

  /// The tables of records, without the disk.
  public var records: RecordReading { RecordReading(state) }

  /// Of every namespace that ever stored something.
  public func status() throws(StoreError) -> [NamespaceName: [RowKind: QueueStatus]] {
    try read { (transaction) throws(SQLiteError) in try QueueReading(transaction).status() }
  }

  /// The same also while the database can't be read: then as of the last commit, and without the oldest row's time.
  public func lastKnownStatus() -> [NamespaceName: [RowKind: QueueStatus]] {
    (try? status()) ?? state.status { _ in nil }
  }

  /// The rows and counts that the last run left, of every namespace that ever stored something.
  public func remains() throws(StoreError) -> [NamespaceName: NamespaceRemains] {
    try read { (transaction) throws(SQLiteError) in try QueueReading(transaction).remains() }
  }

  /// Reads a note; nil if there is no such note.
  public func note(_ namespace: NamespaceName, _ key: String) throws(StoreError) -> [UInt8]? {
    try read { (transaction) throws(SQLiteError) in try transaction.note(namespace, key) }
  }

  /// Reports that something on the way did not let through are tried again now.
  public func endSetBacks(of namespace: NamespaceName) {
    for kind in RowKind.reports {
      if let queue = state.queue(namespace, kind) { file.memory.state[queue].endSetBacks() }
    }
  }

  /// Reports in open windows of `reduce`, which no row has yet.
  public func openReports(of namespace: NamespaceName) -> Int { state.openReports(of: namespace) }

  /// Makes rows of the windows that are open.
  public func endWindows(of namespace: NamespaceName) throws(StoreError) {
    guard let number = state.names.number(of: namespace), openReports(of: namespace) > 0 else { return }
    _ = try file.write { (t) throws(SQLiteError) in try Reductions(t, number).end(all: true) }
  }

  /// How many rows of which type `namespace` holds. Looks at all of them, for as long as a dry run may take.
  public func typeCounts(of namespace: NamespaceName) throws(StoreError) -> TypeCounts {
    try read { (transaction) throws(SQLiteError) in try QueueReading(transaction).typeCounts(namespace) }
  }

  /// A page of rows as they would leave, by ascending id, those in flight among them.
  /// - Parameter after: the last id of the page before; 0 for the first.
  public func export(
    _ namespace: NamespaceName, _ kind: RowKind, after: Int64, limit: Int
  ) throws(StoreError) -> [(id: Int64, meta: [UInt8], payload: [UInt8]?)] {
    try read { (t) throws(SQLiteError) in try QueueReading(t).export(namespace, kind, after: after, limit: limit) }
  }

  /// Every row of this report id that is held, was delivered within 24 h, or left otherwise in this run; in the order of
  /// namespaces and kinds.
  public func trace(_ reportID: String) throws(StoreError) -> [TracedRow] {
    try file.writeDeliveries()
    return try read { (transaction) throws(SQLiteError) in try Trace(transaction).rows(of: reportID) }
  }

  /// A page of dead letters in the order of their numbers. - Parameter after: the last number seen; 0 for the first page.
  public func deadLetters(of namespace: NamespaceName?, after: Int, limit: Int) throws(StoreError) -> [DeadLetter] {
    try read { (t) throws(SQLiteError) in try DeadLetters(t).page(of: namespace, after: after, limit: limit) }
  }

  /// A page of records whose last change the server refused. - Parameter after: the last number seen; 0 for the first page.
  public func refusedRecords(
    of namespace: NamespaceName?, after: Int64, limit: Int
  ) throws(StoreError) -> [RefusedRecord] {
    try read { (t) throws(SQLiteError) in try RecordAccess(t).refused(of: namespace, after: after, limit: limit) }
  }

  /// The first dead letter of the selection, with its whole meta and its payload; nil if there is no such letter.
  public func deadLetter(_ selection: DeadLetterSelection) throws(StoreError) -> DeadLetterContent? {
    try read { (transaction) throws(SQLiteError) in try DeadLetters(transaction).content(selection) }
  }

  func read<Result>(_ body: (StoreTransaction) throws(SQLiteError) -> Result) throws(StoreError) -> Result {
    try file.read(body)
  }

  /// - Parameter bytes: of content that must leave room for reports.
  func write<Result>(
    bytes: Int = 0, _ body: (StoreTransaction) throws(SQLiteError) -> Result
  ) throws(StoreError) -> Result {
    try use { (file) throws(StoreError) in
      if bytes > 0, file.refusal(for: bytes) != nil { throw .diskFull }
      return try file.write(body)
    }
  }

  func scrub() throws(StoreError) { try use { (file) throws(StoreError) in try Maintenance(file).scrub() } }

  /// Copies a long log after the call was answered.
  private func use<Result, Failure>(_ body: (DatabaseFile) throws(Failure) -> Result) throws(Failure) -> Result {
    defer { if file.checkpoints.take() { Task { file.checkpoint() } } }
    return try body(file)
  }
}
