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
  private var connection: SQLiteConnection?

  init(path: String, vfs: String?) { (self.path, self.vfs) = (path, vfs) }

  /// The file is about to be moved.
  nonisolated func closeLater() { Task { await close() } }
  private func close() { connection = nil }

  func reply(to question: DownQuestion) throws(SQLiteError) -> RecordReply {
    try read { connection throws(SQLiteError) in
      RecordReply(
        news: try SQLiteRecordNews(connection).news(to: question), store: try SQLiteRecordLog.store(in: connection),
        isChainBroken: try question.lastPacket.map { (packet) throws(SQLiteError) in
          try !StreamTable.has(packet, of: StreamID(question), in: connection)
        } ?? false)
    }
  }

  func record(_ id: RecordID, of place: RecordPlace) throws(SQLiteError) -> CollectedRecord? {
    try read { connection throws(SQLiteError) in try SQLiteRecordChanges(connection, place, now: 0).find(id) }
  }

  private enum CommandColumn: String, SQLiteColumn { case namespace, device, id }

  func commands(changedBefore time: Int64, limit: Int) throws(SQLiteError) -> [CommandPlace] {
    try read { (connection) throws(SQLiteError) in
      let select = try connection.prepare(
        """
        SELECT \(CommandColumn.list) FROM records
        WHERE namespace IN (SELECT namespace FROM record_sequences) AND tab = :tab AND device > '' AND received_time < :time
        LIMIT :limit
        """)
      select.bind(":tab", RecordTableName.command.text)
      select.bind(":time", time)
      select.bind(":limit", limit)
      var found: [CommandPlace] = []
      try select.forEachRow(of: CommandColumn.self) { row in
        let command = CommandPlace(namespace: row.text(.namespace), device: row.text(.device), id: row.text(.id))
        if let command { found.append(command) }
      }
      return found
    }
  }

  /// In one transaction, so that all is of one state.
  private func read<Result>(_ body: (SQLiteConnection) throws(SQLiteError) -> Result) throws(SQLiteError) -> Result {
    let connection = if let connection { connection } else { try Self.opened(path, vfs) }
    self.connection = connection
    try connection.execute("BEGIN")
    defer { connection.rollBack() }
    return try body(connection)
  }

  private static func opened(_ path: String, _ vfs: String?) throws(SQLiteError) -> SQLiteConnection {
    let opened = try SQLiteConnection(.init(path: path, isReadOnly: true, vfs: vfs))
    try opened.execute("PRAGMA mmap_size = 0; PRAGMA cell_size_check = ON")
    return opened
  }

  /// Reads all records on a connection and a queue for this reading: it may take a minute.
  static func readAll(
    of place: RecordPlace, path: String, vfs: String?, _ take: @escaping @Sendable (DownLine) throws -> Void
  ) async throws {
    try await OwnedQueue.run("prism.collector.snapshot") {
      let connection = try opened(path, vfs)
      try connection.execute("BEGIN")
      defer { connection.rollBack() }
      try SQLiteRecordNews(connection).readAll(of: place, take)
    }
  }
}
