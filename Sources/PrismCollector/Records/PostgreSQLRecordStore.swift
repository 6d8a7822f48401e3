import PrismBase
import PrismPacket
import PrismProtocol

/// Changes records, and answers devices' questions for them. Writers and questions have a connection each, so that no question
/// waits for a writer.
struct PostgreSQLRecordStore: RecordStore {
  private static let attemptsMax = 8
  /// Of reading all records of a table.
  private static let readingDeadline: Duration = .seconds(600)

  private let setup: PostgreSQLSetup
  private let writing: PostgreSQLQueue
  private let reading: PostgreSQLQueue

  init(_ setup: PostgreSQLSetup) {
    self.setup = setup
    (writing, reading) = (PostgreSQLQueue(setup), PostgreSQLQueue(setup))
  }

  func close() async {
    await writing.close()
    await reading.close()
  }

  // MARK: Changing

  func change(
    _ changes: [RecordChange], of place: RecordPlace, if condition: ChangeCondition
  ) async throws(RecordFailure) -> [RecordChanged] {
    var attempt = 0
    while true {
      attempt += 1
      let result: Result<[RecordChanged], RecordFailure>
      do throws(PostgreSQLSetup.Refusal) {
        result = try await writing.run { (connection, by) throws(PostgreSQLError) in
          try Self.change(changes, of: place, if: condition, connection, by)
        }
      } catch {
        // Two packets that lose against changes may wait for each other.
        if case .failed(let error) = error, !error.endsConnection, error.isTransient, attempt < Self.attemptsMax {
          continue
        }
        throw .store(Self.failure(error))
      }
      return try result.get()
    }
  }

  private static func change(
    _ changes: [RecordChange], of place: RecordPlace, if condition: ChangeCondition, _ connection: PostgreSQLConnection,
    _ by: Deadline
  ) throws(PostgreSQLError) -> Result<[RecordChanged], RecordFailure> {
    var refusal: RecordFailure?
    do throws(PostgreSQLError) {
      return .success(
        try connection.transaction(by: by) { () throws(PostgreSQLError) in
          let tables = RecordTables(PostgreSQLDriver(connection, by: by))
          // By the clock that all replicas share.
          let now = try connection.query("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint", by: by).int(
            0, 0)
          let result = try PostgreSQLError.only {
            try tables.change(changes, of: place, if: condition, now: now)
          }
          switch result {
          case .success(let results): return results
          case .failure(let failure):
            refusal = failure
            throw PostgreSQLError(kind: .refused(state: ""), message: "rolled back")
          }
        })
    } catch {
      guard let refusal else { throw error }
      return .failure(refusal)
    }
  }

  private static func failure(_ refusal: PostgreSQLSetup.Refusal) -> StoreFailure {
    if case .failed(let error) = refusal, error.isRejection { return .rejected(error.description) }
    return .unavailable(refusal.description)
  }

  // MARK: Reading

  func record(_ id: RecordID, of place: RecordPlace) async throws(StoreFailure) -> CollectedRecord? {
    try await read { tables, _, _ in try tables.find(id, in: place) }
  }

  func commands(changedBefore time: Int64, limit: Int) async throws(StoreFailure) -> [CommandPlace] {
    try await read { tables, _, _ in try tables.commands(changedBefore: time, limit: limit) }
  }

  private static let mark = """
    SELECT s.id, s.life, $3::uuid IS NOT NULL AND NOT EXISTS (SELECT FROM streams n WHERE n.device = $1
      AND n.namespace = $2 AND n.kind = $4::"char" AND (n.last_packet = $3::uuid
        OR EXISTS (SELECT FROM packets p WHERE p.packet = $3::uuid AND p.stream = n.id)))
    FROM store_mark s
    """

  func reply(to question: DownQuestion) async throws(StoreFailure) -> RecordReply {
    try await read { tables, connection, by in
      let found = try connection.query(
        Self.mark,
        [
          question.deviceID, question.namespace.text, question.lastPacket?.description, RowKind.records.tablePrefix,
        ], by: by)
      return RecordReply(
        news: try tables.news(to: question), store: StoreMark(id: found.int(0, 0), life: found.int(0, 1)),
        isChainBroken: found.bool(0, 2))
    }
  }

  /// Reads on a connection of its own: it may take a minute.
  func readAll(of place: RecordPlace, _ take: @escaping @Sendable (DownLine) throws -> Void) async throws {
    let setup = setup
    try await OwnedQueue.run("prism.collector.snapshot") {
      let (connection, by) = (try setup.connect(), Deadline(Self.readingDeadline))
      try connection.begin(Self.readingMode, by: by)
      try connection.execute("SET LOCAL statement_timeout = 0", by: by)
      let found = try connection.query("SELECT id, life FROM store_mark", by: by)
      try RecordTables(PostgreSQLDriver(connection, by: by)).readAll(
        of: place, in: StoreMark(id: found.int(0, 0), life: found.int(0, 1)), take)
    }
  }

  private static let readingMode = "ISOLATION LEVEL REPEATABLE READ, READ ONLY"

  /// In one transaction, so that all is of one state.
  private func read<Result: Sendable>(
    _ body: @escaping @Sendable (RecordTables, PostgreSQLConnection, Deadline) throws -> Result
  ) async throws(StoreFailure) -> Result {
    do throws(PostgreSQLSetup.Refusal) {
      return try await reading.run { (connection, by) throws(PostgreSQLError) in
        try connection.transaction(by: by) { () throws(PostgreSQLError) in
          try connection.execute("SET TRANSACTION \(Self.readingMode)", by: by)
          return try PostgreSQLError.only {
            try body(RecordTables(PostgreSQLDriver(connection, by: by)), connection, by)
          }
        }
      }
    } catch { throw Self.failure(error) }
  }
}
