import PrismBase
import PrismProtocol

/// Answers the page on a connection and a queue of its own: it holds up neither packets nor outputs.
actor PostgreSQLQueries: ReportQueries {
  private let executor = DispatchQueueExecutor(label: "prism.collector.queries")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Ids are sparse where packets are small. The first window is small for a page that is full soon.
  private static let windows: (first: Int64, largest: Int64) = (1 << 17, 1 << 22)

  private let setup: PostgreSQLSetup
  private var connection: PostgreSQLConnection?

  init(_ setup: PostgreSQLSetup) { self.setup = setup }

  func close() { connection = nil }

  private func rows(_ sql: String, _ values: [String?] = []) throws(StoreFailure) -> PostgreSQLResult {
    do throws(PostgreSQLSetup.Refusal) {
      let connection = if let connection { connection } else { try setup.connect() }
      self.connection = connection
      do throws(PostgreSQLError) { return try connection.query(sql, values, by: Deadline(setup.deadline)) } catch {
        if error.endsConnection { self.connection = nil }
        throw .failed(error)
      }
    } catch {
      throw .unavailable(error.description)
    }
  }

  // MARK: Windows

  func windows(_ filter: ReportFilter) throws(StoreFailure) -> [ClosedRange<Int64>] {
    guard let wanted = filter.ids else { return [] }
    // A day's first id is noted with the first packet of it; ids of the day before may be written after that.
    let bounds = try rows(
      """
      SELECT prism_horizon(),
        coalesce((SELECT max(first_report) FROM days WHERE day <= \(Self.day("$1"))), 0),
        (SELECT min(first_report) FROM days), (SELECT min(first_report) FROM days WHERE day > \(Self.day("$2")) + 1)
      """, [String(filter.since ?? 0), String(filter.until ?? 253_402_300_799_000)])
    let low = max(wanted.lowerBound, bounds.int(0, 1), bounds.int(0, 2))
    let end = min(bounds.int(0, 0), bounds.isNull(0, 3) ? .max : bounds.int(0, 3))
    var (high, size) = (min(wanted.upperBound, end - 1), Self.windows.first)
    var windows: [ClosedRange<Int64>] = []
    while high >= low {
      let first = high - low < size ? low : high - size + 1
      windows.append(first...high)
      (high, size) = (first - 1, min(size * 2, Self.windows.largest))
    }
    return windows
  }

  func newestID() throws(StoreFailure) -> Int64 {
    max(0, try rows("SELECT prism_horizon()").int(0, 0) - 1)
  }

  private static func day(_ parameter: String) -> String {
    "(to_timestamp(\(parameter)::bigint / 1000.0) AT TIME ZONE 'UTC')::date"
  }

  func receivedTime(from id: Int64) throws(StoreFailure) -> Int64? {
    // A day that is being written has no order of ids: few are read. Ids are sparse where packets are small.
    for count in [Self.windows.first >> 7, Self.windows.first, Self.windows.largest] {
      let found = try rows(
        """
        SELECT (extract(epoch FROM min(received)) * 1000)::bigint FROM reports
        WHERE id >= $1::bigint AND id < $1::bigint + \(count)
        """, [String(id)])
      if found.count > 0, !found.isNull(0, 0) { return found.int(0, 0) }
    }
    return nil
  }

  // MARK: Counting

  func counts(_ filter: ReportFilter, _ grouping: ReportGrouping) throws(StoreFailure) -> [ReportCount] {
    guard filter.ids != nil else { return [] }
    let question = PostgreSQLGrouping(filter, grouping)
    let found = try rows(question.counts, question.values)
    return (0..<found.count).map { row in
      ReportCount(time: found.int(row, 0), group: found.text(row, 1), count: Int(found.int(row, 2)))
    }
  }

  func numbers(
    _ filter: ReportFilter, path: [String], _ grouping: ReportGrouping, limit: Int
  ) throws(StoreFailure) -> [ReportNumber] {
    guard filter.ids != nil else { return [] }
    var question = PostgreSQLGrouping(filter, grouping)
    let sql = question.numbers(of: path, limit: limit)
    let found = try rows(sql, question.values)
    return (0..<found.count).map { row in
      let bits = found.bytes(row, 2).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
      return ReportNumber(time: found.int(row, 0), group: found.text(row, 1), value: Double(bitPattern: bits))
    }
  }

  // MARK: Names

  func streams(of device: String?, limit: Int) throws(StoreFailure) -> [DeviceStream] {
    let condition = device == nil ? "" : "AND device = $1"
    let found = try rows(
      """
      SELECT device, namespace, kind::text, packets, (extract(epoch FROM received) * 1000)::bigint, ledger FROM streams
      WHERE packets > 0 \(condition) ORDER BY received DESC, device, namespace, kind LIMIT \(limit)
      """, device.map { [$0] } ?? [])
    return (0..<found.count).map { row in
      let kind = RowKind.reports.first { $0.tablePrefix == found.text(row, 2) }?.name ?? found.text(row, 2)
      return DeviceStream(
        device: found.text(row, 0), namespace: found.text(row, 1), kind: kind, packets: Int(found.int(row, 3)),
        receivedTime: found.int(row, 4), ledger: found.isNull(row, 5) ? nil : found.text(row, 5))
    }
  }

  func types(limit: Int) throws(StoreFailure) -> [TypeName] {
    let found = try rows("\(PostgreSQLTypes.list) LIMIT \(limit)")
    return (0..<found.count).map { TypeName(namespace: found.text($0, 0), type: found.text($0, 1)) }
  }
}
