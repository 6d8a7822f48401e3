import PrismBase
import PrismProtocol

/// Answers the page on a connection and a queue of its own: it holds up neither packets nor outputs.
actor PostgreSQLQueries: ReportQueries {
  private let executor = DispatchQueueExecutor(label: "prism.collector.queries")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let setup: PostgreSQLSetup
  private let reader: BlockReader
  private var connection: PostgreSQLConnection?

  init(_ setup: PostgreSQLSetup, _ damaged: DamagedBlocks) { (self.setup, reader) = (setup, BlockReader(damaged)) }

  func close() { connection = nil }

  private func ask<Result>(
    _ body: (PostgreSQLBlocks) throws(PostgreSQLError) -> Result
  ) throws(StoreFailure) -> Result {
    do throws(PostgreSQLSetup.Refusal) {
      let connection = if let connection { connection } else { try setup.connect() }
      self.connection = connection
      do throws(PostgreSQLError) {
        return try body(PostgreSQLBlocks(connection: connection, deadline: Deadline(setup.deadline)))
      } catch {
        if error.endsConnection { self.connection = nil }
        throw .failed(error)
      }
    } catch {
      throw .unavailable(error.description)
    }
  }

  func windows(_ filter: ReportFilter) throws(StoreFailure) -> [ClosedRange<Int64>] {
    try ask { (source) throws(PostgreSQLError) in try reader.windows(try source.final(filter), of: source) }
  }

  func newestID() throws(StoreFailure) -> Int64 {
    try ask { (source) throws(PostgreSQLError) in max(0, try source.horizon() - 1) }
  }

  func receivedTime(from id: Int64) throws(StoreFailure) -> Int64? {
    try ask { (source) throws(PostgreSQLError) in try reader.receivedTime(from: id, of: source) }
  }

  func counts(_ filter: ReportFilter, _ grouping: ReportGrouping) throws(StoreFailure) -> [ReportCount] {
    try ask { (source) throws(PostgreSQLError) in try reader.counts(filter, grouping, of: source) }
  }

  func numbers(
    _ filter: ReportFilter, path: [String], _ grouping: ReportGrouping, limit: Int
  ) throws(StoreFailure) -> [ReportNumber] {
    try ask { (source) throws(PostgreSQLError) in
      try reader.numbers(filter, path: path, grouping, limit: limit, of: source)
    }
  }

  // MARK: Names

  func streams(of device: String?, limit: Int) throws(StoreFailure) -> [DeviceStream] {
    let condition = device == nil ? "" : "AND device = $1"
    let found = try ask { (source) throws(PostgreSQLError) in
      try source.connection.query(
        """
        SELECT device, namespace, kind::text, packets, (extract(epoch FROM received) * 1000)::bigint, ledger FROM streams
        WHERE packets > 0 \(condition) ORDER BY received DESC, device, namespace, kind LIMIT \(limit)
        """, device.map { [$0] } ?? [], by: source.deadline)
    }
    return (0..<found.count).map { row in
      let kind = RowKind.reports.first { $0.tablePrefix == found.text(row, 2) }?.name ?? found.text(row, 2)
      return DeviceStream(
        device: found.text(row, 0), namespace: found.text(row, 1), kind: kind, packets: Int(found.int(row, 3)),
        receivedTime: found.int(row, 4), ledger: found.isNull(row, 5) ? nil : found.text(row, 5))
    }
  }

  func types(limit: Int) throws(StoreFailure) -> [TypeName] {
    try ask { (source) throws(PostgreSQLError) in Array(try source.types().prefix(limit)) }
  }
}
