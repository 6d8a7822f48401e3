import PrismBase
import PrismPacket
import PrismProtocol
import PrismSQLite

/// Answers devices' questions for records on a connection and a queue of its own, so that no question holds packets up.
actor SQLiteRecordReader {
  private let executor = DispatchQueueExecutor(label: "prism.collector.records")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let path: String
  private let vfs: String?
  private var driver: SQLiteDriver?

  init(path: String, vfs: String?) { (self.path, self.vfs) = (path, vfs) }

  /// The file is about to be moved.
  nonisolated func closeLater() { Task { await close() } }
  private func close() { driver = nil }

  func reply(to question: DownQuestion) throws(SQLiteError) -> RecordReply {
    try read { driver in
      RecordReply(
        news: try RecordTables(driver).news(to: question), store: try StoreMark(driver.connection),
        isChainBroken: try question.lastPacket.map {
          try !StreamTable.has($0, of: StreamID(question), in: driver.connection)
        } ?? false)
    }
  }

  /// In one transaction, so that all is of one state.
  func read<Result: Sendable>(
    _ body: @Sendable (SQLiteDriver) throws -> Result
  ) throws(SQLiteError) -> Result {
    let driver = if let driver { driver } else { try Self.opened(path, vfs) }
    self.driver = driver
    return try Self.read(driver, body)
  }

  private static func read<Result>(
    _ driver: SQLiteDriver, _ body: (SQLiteDriver) throws -> Result
  ) throws(SQLiteError) -> Result {
    try driver.connection.execute("BEGIN")
    defer { driver.rollBack() }
    return try SQLiteError.only { try body(driver) }
  }

  private static func opened(_ path: String, _ vfs: String?) throws(SQLiteError) -> SQLiteDriver {
    let opened = try SQLiteConnection(.init(path: path, isReadOnly: true, vfs: vfs))
    try opened.execute("PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON")
    return SQLiteDriver(opened)
  }

  /// Reads all records on a connection and a queue for this reading: it may take a minute.
  static func readAll(
    of place: RecordPlace, path: String, vfs: String?, _ take: @escaping @Sendable (DownLine) throws -> Void
  ) async throws {
    try await OwnedQueue.run("prism.collector.snapshot") {
      let driver = try opened(path, vfs)
      try driver.begin(isWriting: false)
      defer { driver.rollBack() }
      try RecordTables(driver).readAll(of: place, in: try StoreMark(driver.connection), take)
    }
  }
}

extension SQLiteError {
  /// Runs what throws this error only, or fails by a database that is not as it must be.
  static func only<Result>(_ body: () throws -> Result) throws(SQLiteError) -> Result {
    do { return try body() } catch let error as SQLiteError { throw error } catch { throw .corrupt("\(error)") }
  }
}
