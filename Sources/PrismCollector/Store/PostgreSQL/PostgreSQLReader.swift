import PrismBase
import PrismProtocol

/// Reads reports on a connection and a queue of its own, so that no question holds packets up.
actor PostgreSQLReader {
  private let executor = DispatchQueueExecutor(label: "prism.collector.reader")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let setup: PostgreSQLSetup
  private var connection: PostgreSQLConnection?
  private let blocks: BlockReader

  init(_ setup: PostgreSQLSetup, _ damaged: DamagedBlocks = DamagedBlocks()) {
    (self.setup, blocks) = (setup, BlockReader(damaged))
  }

  func close() { connection = nil }

  func state(of stream: StreamID) throws(PostgreSQLSetup.Refusal) -> StreamState? {
    try read { (source) throws(PostgreSQLError) in
      let result = try source.connection.query(
        """
        SELECT last_packet::text, packets, ledger FROM streams
        WHERE device = $1 AND namespace = $2 AND kind = $3::"char" AND packets > 0
        """, [stream.device, stream.namespace.text, stream.kind.tablePrefix], by: source.deadline)
      guard result.count == 1 else { return nil }
      return StreamState(
        lastPacket: PacketID(result.text(0, 0)), packets: Int(result.int(0, 1)),
        ledger: result.isNull(0, 2) ? nil : result.text(0, 2))
    }
  }

  func deviceCount() throws(PostgreSQLSetup.Refusal) -> Int {
    try read { (source) throws(PostgreSQLError) in
      Int(
        try source.connection.query("SELECT count(DISTINCT device) FROM streams WHERE packets > 0", by: source.deadline)
          .int(0, 0))
    }
  }

  func hasPackets(of device: String) throws(PostgreSQLSetup.Refusal) -> Bool {
    try read { (source) throws(PostgreSQLError) in
      try source.connection.query(
        "SELECT 1 FROM streams WHERE device = $1 AND packets > 0 LIMIT 1", [device], by: source.deadline
      ).count > 0
    }
  }

  func report(_ id: Int64) throws(PostgreSQLSetup.Refusal) -> StoredReport? {
    try read { (source) throws(PostgreSQLError) in try blocks.report(id, of: source) }
  }

  func page(_ filter: ReportFilter) throws(PostgreSQLSetup.Refusal) -> [StoredReport] {
    try read { (source) throws(PostgreSQLError) in try blocks.page(try source.final(filter), of: source) }
  }

  func records(_ filter: RecordFilter) throws(PostgreSQLSetup.Refusal) -> [CollectedRecord] {
    try read { (source) throws(PostgreSQLError) in
      try PostgreSQLError.only {
        try RecordTables(PostgreSQLDriver(source.connection, by: source.deadline)).page(filter)
      }
    }
  }

  private func read<Result>(
    _ body: (PostgreSQLBlocks) throws(PostgreSQLError) -> Result
  ) throws(PostgreSQLSetup.Refusal) -> Result {
    let connection = if let connection { connection } else { try setup.connect() }
    self.connection = connection
    do throws(PostgreSQLError) {
      return try body(PostgreSQLBlocks(connection: connection, deadline: Deadline(setup.deadline)))
    } catch {
      if error.endsConnection { self.connection = nil }
      throw .failed(error)
    }
  }
}
