import Dispatch
import PrismBase
import PrismOutputs
import PrismPacket
import PrismProtocol
import PrismSQL
import PrismSQLite

/// Opens connections to a store for those who read it, and says what it is when one of them fails.
protocol SQLSource: Sendable {
  /// - Parameter isLong: for a reading that may take minutes.
  func driver(isLong: Bool) throws -> any SQLDriver
  /// How often the database was replaced: a reading that began before finds the damage of one that was set aside.
  var replacements: Int { get }
  func failure(_ error: any Error, since replacements: Int) async -> StoreFailure
  /// Whether the same transaction may succeed at once.
  func isTransient(_ error: any Error) -> Bool
}

/// Reads a store on a connection and a queue of its own: no question holds up packets or outputs.
actor StoreReader: ReportQueries {
  private let executor: DispatchQueueExecutor
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private static let attemptsMax = 8

  private let source: any SQLSource
  private let blocks: BlockReader
  private let session: SQLSession

  /// - Parameter isForReaders: its questions come behind the work for devices.
  init(
    _ source: any SQLSource, label: String = "reader", isForReaders: Bool = false,
    _ damaged: DamagedBlocks = DamagedBlocks()
  ) {
    (self.source, blocks) = (source, BlockReader(damaged))
    session = SQLSession { try source.driver(isLong: false) }
    executor = DispatchQueueExecutor(label: "prism.collector.\(label)", isBackground: isForReaders)
  }

  /// The file is about to be moved.
  nonisolated func closeLater() { Task { await close() } }
  func close() { session.close() }

  /// Runs `body` in one state of the database.
  func read<Result: Sendable>(
    _ body: @Sendable (StoreTables) throws -> Result
  ) async throws(StoreFailure) -> Result { try await ask(body) }

  /// Changes the database in one transaction. If `body` refuses, nothing is changed.
  func change<Value: Sendable, Refusal: Error>(
    _ body: @Sendable (StoreTables) throws -> Result<Value, Refusal>
  ) async throws(StoreFailure) -> Result<Value, Refusal> {
    let since = source.replacements
    var attempt = 0
    while true {
      attempt += 1
      do {
        return try session.perform(isWriting: true, commits: \.isSuccess) { try body(StoreTables($0)) }
      } catch {
        guard attempt < Self.attemptsMax, source.isTransient(error) else {
          throw await source.failure(error, since: since)
        }
      }
    }
  }

  /// Reads on a connection and a queue for this reading, which may take minutes. An error of `body` comes as it is.
  nonisolated func readApart(_ body: @escaping @Sendable (StoreTables) throws -> Void) async throws {
    let (source, since) = (source, source.replacements)
    do {
      try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
        DispatchQueue(label: "prism.collector.snapshot").async {
          continuation.resume(
            with: Result {
              try SQLSession { try source.driver(isLong: true) }.perform(isWriting: false) { try body(StoreTables($0)) }
            })
        }
      }
    } catch let error as SQLiteError { throw await source.failure(error, since: since) }
  }

  /// Runs statements outside of a transaction, on a connection for them, which may take minutes.
  func apart(_ body: (any SQLDriver) throws -> Void) async throws(StoreFailure) {
    let since = source.replacements
    do { try body(try source.driver(isLong: true)) } catch { throw await source.failure(error, since: since) }
  }

  /// - Parameter isFinal: the body asks for what is final.
  private func ask<Result>(
    isFinal: Bool = false, _ body: (StoreTables) throws -> Result
  ) async throws(StoreFailure) -> Result {
    let since = source.replacements
    do {
      return try session.perform(isWriting: false, isFinal: isFinal) { try body(StoreTables($0)) }
    } catch {
      if session.driver?.dialect == .sqlite { session.close() }  // the file may be replaced
      throw await source.failure(error, since: since)
    }
  }

  // MARK: Reports

  func page(_ filter: ReportFilter) async throws(StoreFailure) -> [StoredReport] {
    try await ask(isFinal: true) { try blocks.page($0.final(filter), of: $0) }
  }

  func report(_ id: Int64, _ scope: Scope) async throws(StoreFailure) -> StoredReport? {
    try await ask { try blocks.report(id, scope, of: $0) }
  }

  /// The next blocks to merge behind an id, and what they become. - Parameter days: the ids at which days begin, ascending.
  func merge(after id: Int64, days: [Int64]) async throws(StoreFailure) -> BlockMerge.Result {
    try await ask {
      try blocks.merge(after: id, before: .max, day: { head in Int64(days.count { $0 <= head.id }) }, of: $0)
    }
  }

  func erasure(_ filter: ReportFilter, after id: Int64) async throws(StoreFailure) -> BlockErasure? {
    try await ask { try blocks.erasure(filter, after: id, of: $0) }
  }

  func next(_ work: RuledRetention.Work, of retention: RuledRetention) async throws(StoreFailure)
    -> RuledRetention.Found
  { try await ask { try blocks.next(work, of: retention, in: $0) } }

  // MARK: The page's questions

  func windows(_ filter: ReportFilter, _ grouping: ReportGrouping?) async throws(StoreFailure) -> [ClosedRange<Int64>] {
    try await ask(isFinal: true) { try blocks.windows($0.final(filter), grouping, of: $0) }
  }

  func newestID() async throws(StoreFailure) -> Int64 { try await ask(isFinal: true) { try $0.newestID() } }

  func first(from id: Int64) async throws(StoreFailure) -> (id: Int64, receivedTime: Int64)? {
    try await ask { try blocks.first(from: id, of: $0) }
  }

  func counts(_ filter: ReportFilter, _ grouping: ReportGrouping) async throws(StoreFailure) -> [ReportCount] {
    try await ask { try blocks.counts(filter, grouping, of: $0) }
  }

  func numbers(
    _ filter: ReportFilter, path: [String], _ grouping: ReportGrouping, limit: Int
  ) async throws(StoreFailure) -> (numbers: [ReportNumbers], from: Int64?) {
    try await ask { try blocks.numbers(filter, path: path, grouping, limit: limit, of: $0) }
  }

  func streams(_ scope: Scope, of device: String?, limit: Int) async throws(StoreFailure) -> [DeviceStream] {
    try await ask { try $0.streams(scope, of: device, limit: limit) }
  }

  func types(_ scope: Scope, limit: Int) async throws(StoreFailure) -> [TypeName] {
    try await ask { Array(try $0.types().filter { scope.has($0.namespace) }.prefix(limit)) }
  }
}

/// The readers of a store, each with a connection and a queue of its own: of reports, of the page's questions, of records, of
/// outputs. So outputs wait behind no question of people.
struct StoreReaders: Sendable {
  let reports: StoreReader, page: StoreReader, records: StoreReader, outputs: StoreReader
  let damaged = DamagedBlocks()

  init(reports: any SQLSource, page: any SQLSource, records: any SQLSource) {
    self.reports = StoreReader(reports, isForReaders: true, damaged)
    self.page = StoreReader(page, label: "queries", isForReaders: true, damaged)
    self.records = StoreReader(records, label: "records")
    outputs = StoreReader(reports, label: "outputs", damaged)
  }

  var all: [StoreReader] { [reports, page, records, outputs] }

  func close() async { for reader in all { await reader.close() } }
}

extension Result {
  var isSuccess: Bool { if case .success = self { true } else { false } }
}

/// The answers that the stores on SQLite and on PostgreSQL give alike.
protocol ReadStore: PacketStore {
  var readers: StoreReaders { get }
  var health: StoreHealth { get }
  /// Milliseconds since 1970, by this process's clock.
  var unixMilliseconds: Int64 { get async }
  /// Changes the database in one transaction. If `body` refuses, nothing is changed.
  /// - Parameters:
  ///   - fault: for the log, of a store that fails.
  ///   - end: the same of the end of that.
  func changing<Value: Sendable, Refusal: Error>(
    _ fault: String, _ end: String, refusing body: @Sendable (StoreTables) throws -> Result<Value, Refusal>
  ) async throws(StoreFailure) -> Result<Value, Refusal>
}

extension ReadStore {
  nonisolated var queries: any ReportQueries { readers.page }
  nonisolated var failure: String? { health.failure }
  nonisolated var warnings: [String] { health.warnings + (readers.damaged.warning.map { [$0] } ?? []) }
  nonisolated var figures: StoreCounts { health.counts }

  func deviceCount() async throws(StoreFailure) -> Int { try await readers.reports.read { try $0.deviceCount() } }

  func has(_ packet: PacketID, of stream: StreamID) async throws(StoreFailure) -> Bool {
    try await readers.reports.read { try $0.has(packet, of: stream) }
  }

  func hasPackets(of device: String) async throws(StoreFailure) -> Bool {
    try await readers.reports.read { try $0.hasPackets(of: device) }
  }

  func page(_ filter: ReportFilter) async throws(StoreFailure) -> [StoredReport] {
    try await readers.reports.page(filter)
  }

  func report(_ id: Int64, _ scope: Scope) async throws(StoreFailure) -> StoredReport? {
    try await readers.reports.report(id, scope)
  }

  func records(_ filter: RecordFilter) async throws(StoreFailure) -> [CollectedRecord] {
    try await readers.records.read { try $0.records.page(filter) }
  }

  func changing<Value: Sendable>(
    _ fault: String, _ end: String, _ body: @Sendable (StoreTables) throws -> Value
  ) async throws(StoreFailure) -> Value {
    let result: Result<Value, Never> = try await changing(fault, end, refusing: { .success(try body($0)) })
    return result.get()
  }

  // MARK: Records

  func change(
    _ changes: [RecordChange], of place: RecordPlace, if condition: ChangeCondition
  ) async throws(RecordFailure) -> [RecordChanged] {
    let (result, own): (Result<[RecordChanged], RecordFailure>, Int64)
    do throws(StoreFailure) {
      own = await unixMilliseconds
      result = try await changing(
        "records can't be changed", "records are changed again",
        refusing: { tables in
          try tables.records.change(changes, of: place, if: condition, now: try tables.sharedTime() ?? own)
        })
    } catch { throw .store(error) }
    return try result.get()
  }

  func record(_ id: RecordID, of place: RecordPlace) async throws(StoreFailure) -> CollectedRecord? {
    try await readers.records.read { try $0.records.find(id, in: place) }
  }

  func commands(changedBefore time: Int64, limit: Int) async throws(StoreFailure) -> [CommandPlace] {
    try await readers.records.read { try $0.records.commands(changedBefore: time, limit: limit) }
  }

  func tags(of namespaces: [String]) async throws(StoreFailure) -> [CollectedTags] {
    try await readers.records.read { try $0.records.tags(of: namespaces, limit: CollectedTags.countMax) }
  }

  func reply(to question: DownQuestion) async throws(StoreFailure) -> RecordReply {
    let (reply, position) = try await readers.records.read { tables in
      let (news, position) = try tables.records.news(to: question)
      let isBroken = try question.lastPacket.map { try !tables.has($0, of: StreamID(question)) } ?? false
      return (RecordReply(news: news, store: try tables.mark(), isChainBroken: isBroken), position)
    }
    if let position {
      let (place, own) = (
        RecordPlace(namespace: question.namespace, table: question.table, device: question.deviceID),
        await unixMilliseconds
      )
      // If it fails, the device says it again with its next question.
      try? await changing("positions of devices are not kept", "positions of devices are kept again") { tables in
        try tables.records.lock(place.namespace, isShared: true)
        try tables.records.positions.hear(position, of: place, now: try tables.sharedTime() ?? own)
      }
    }
    return reply
  }

  func isDeletionPending(_ id: RecordID, of place: RecordPlace) async throws(StoreFailure) -> Bool {
    try await readers.records.read { try $0.records.positions.isDeletionPending(id, in: place) }
  }

  func readAll(of place: RecordPlace, _ take: @escaping @Sendable (DownLine) throws -> Void) async throws {
    try await readers.records.readApart { try $0.records.readAll(of: place, in: try $0.mark(), take) }
  }
}
