import PrismBase
import PrismPacket
import PrismProtocol

/// Changes records, and answers devices' questions for them. Writers and questions have a connection each, so that no question
/// waits for a writer.
struct PostgreSQLRecordStore: RecordStore {
  private static let attemptsMax = 8
  /// Records that are read at a time.
  private static let fetchMax = 1000
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
          switch try PostgreSQLRecordChanges(connection, place, by).make(changes, if: condition) {
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
    try await read { (connection, by) throws(PostgreSQLError) in
      try PostgreSQLRecordTable(connection: connection, deadline: by).find(id, in: place)
    }
  }

  func commands(changedBefore time: Int64, limit: Int) async throws(StoreFailure) -> [CommandPlace] {
    try await read { (connection, by) throws(PostgreSQLError) in
      let found = try connection.query(
        """
        SELECT namespace, device, id FROM records WHERE namespace IN (SELECT namespace FROM record_sequences) AND tab = $1
          AND device > '' AND received < to_timestamp($2::bigint / 1000.0) LIMIT \(limit)
        """, [RecordTableName.command.text, String(time)], by: by)
      return (0..<found.count).compactMap {
        CommandPlace(namespace: found.text($0, 0), device: found.text($0, 1), id: found.text($0, 2))
      }
    }
  }

  func reply(to question: DownQuestion) async throws(StoreFailure) -> RecordReply {
    try await read { (connection, by) throws(PostgreSQLError) in
      try PostgreSQLRecordNews(connection, by).reply(to: question)
    }
  }

  /// Reads on a connection of its own: it may take a minute.
  func readAll(of place: RecordPlace, _ take: @escaping @Sendable (DownLine) throws -> Void) async throws {
    let setup = setup
    try await OwnedQueue.run("prism.collector.snapshot") {
      let (connection, by) = (try setup.connect(), Deadline(Self.readingDeadline))
      try connection.begin(Self.readingMode, by: by)
      try connection.execute("SET LOCAL statement_timeout = 0", by: by)
      let news = PostgreSQLRecordNews(connection, by)
      try take(.head(try news.beginReadingAll(of: place)))
      while case let records = try news.nextRecords(Self.fetchMax), !records.isEmpty {
        for record in records { try take(.record(record)) }
      }
    }
  }

  private static let readingMode = "ISOLATION LEVEL REPEATABLE READ, READ ONLY"

  /// In one transaction, so that all is of one state.
  private func read<Result: Sendable>(
    _ body: @escaping @Sendable (PostgreSQLConnection, Deadline) throws(PostgreSQLError) -> Result
  ) async throws(StoreFailure) -> Result {
    do throws(PostgreSQLSetup.Refusal) {
      return try await reading.run { (connection, by) throws(PostgreSQLError) in
        try connection.transaction(by: by) { () throws(PostgreSQLError) in
          try connection.execute("SET TRANSACTION \(Self.readingMode)", by: by)
          return try body(connection, by)
        }
      }
    } catch { throw Self.failure(error) }
  }
}
