import PrismBase
import PrismProtocol

/// Reads reports on a connection and a queue of its own, so that no question holds packets up.
actor PostgreSQLReader {
  private let executor = DispatchQueueExecutor(label: "prism.collector.reader")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let setup: PostgreSQLSetup
  private var connection: PostgreSQLConnection?
  private var day = WrittenDay()

  init(_ setup: PostgreSQLSetup) { self.setup = setup }

  func close() { connection = nil }

  func state(of stream: StreamID) throws(PostgreSQLSetup.Refusal) -> StreamState? {
    try read { (pages) throws(PostgreSQLError) in
      let result = try pages.connection.query(
        """
        SELECT last_packet::text, packets, ledger FROM streams
        WHERE device = $1 AND namespace = $2 AND kind = $3::"char" AND packets > 0
        """, [stream.device, stream.namespace.text, stream.kind.tablePrefix], by: pages.deadline)
      guard result.count == 1 else { return nil }
      return StreamState(
        lastPacket: PacketID(result.text(0, 0)), packets: Int(result.int(0, 1)),
        ledger: result.isNull(0, 2) ? nil : result.text(0, 2))
    }
  }

  func deviceCount() throws(PostgreSQLSetup.Refusal) -> Int {
    try read { (pages) throws(PostgreSQLError) in
      Int(
        try pages.connection.query("SELECT count(DISTINCT device) FROM streams WHERE packets > 0", by: pages.deadline)
          .int(0, 0))
    }
  }

  func hasPackets(of device: String) throws(PostgreSQLSetup.Refusal) -> Bool {
    try read { (pages) throws(PostgreSQLError) in
      try pages.connection.query(
        "SELECT 1 FROM streams WHERE device = $1 AND packets > 0 LIMIT 1", [device], by: pages.deadline
      ).count > 0
    }
  }

  func report(_ id: Int64) throws(PostgreSQLSetup.Refusal) -> StoredReport? {
    try read { (pages) throws(PostgreSQLError) in try pages.report(id) }
  }

  func page(_ filter: ReportFilter) throws(PostgreSQLSetup.Refusal) -> [StoredReport] {
    try read { (pages) throws(PostgreSQLError) in try pages.page(filter, &day) }
  }

  func records(_ filter: RecordFilter) throws(PostgreSQLSetup.Refusal) -> [CollectedRecord] {
    try read { (pages) throws(PostgreSQLError) in
      try PostgreSQLError.only {
        try RecordTables(PostgreSQLDriver(pages.connection, by: pages.deadline)).page(filter)
      }
    }
  }

  private func read<Result>(
    _ body: (ReportPages) throws(PostgreSQLError) -> Result
  ) throws(PostgreSQLSetup.Refusal) -> Result {
    let connection = if let connection { connection } else { try setup.connect() }
    self.connection = connection
    do throws(PostgreSQLError) {
      return try body(ReportPages(connection: connection, deadline: Deadline(setup.deadline)))
    } catch {
      if error.endsConnection { self.connection = nil }
      throw .failed(error)
    }
  }
}
