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
    try ask { (connection, by) throws(PostgreSQLError) in try connection.query(sql, values, by: by) }
  }

  private func ask<Result>(
    _ body: (PostgreSQLConnection, Deadline) throws(PostgreSQLError) -> Result
  ) throws(StoreFailure) -> Result {
    do throws(PostgreSQLSetup.Refusal) {
      let connection = if let connection { connection } else { try setup.connect() }
      self.connection = connection
      do throws(PostgreSQLError) { return try body(connection, Deadline(setup.deadline)) } catch {
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
    let tally = ReportTally(filter, grouping)
    let names = try fill(tally, filter, bucket: grouping.bucketMilliseconds)
    return tally.counts(names.stream, names.type)
  }

  func numbers(
    _ filter: ReportFilter, path: [String], _ grouping: ReportGrouping, limit: Int
  ) throws(StoreFailure) -> [ReportNumber] {
    let tally = ReportTally(filter, grouping, path: path, limit: limit)
    let names = try fill(tally, filter, bucket: grouping.bucketMilliseconds)
    return tally.numbers(names.stream, names.type)
  }

  /// The names of streams and types by numbers that hold for one question.
  private struct Names {
    private var numbers: [TypeName: Int64] = [:]
    private var types: [TypeName] = []
    private var streams: [Int64: StreamID] = [:]

    mutating func note(_ rows: PostgreSQLResult, _ row: Int) -> (stream: Int64, type: Int64) {
      let (stream, name) = (rows.int(row, 1), TypeName(namespace: rows.text(row, 3), type: rows.text(row, 5)))
      if streams[stream] == nil, let namespace = NamespaceName(name.namespace),
        let kind = RowKind.reports.first(where: { $0.tablePrefix == rows.text(row, 4) })
      {
        streams[stream] = StreamID(device: rows.text(row, 2), namespace: namespace, kind: kind)
      }
      if let number = numbers[name] { return (stream, number) }
      numbers[name] = Int64(types.count)
      types.append(name)
      return (stream, Int64(types.count - 1))
    }

    func stream(_ number: Int64) -> StreamID? { streams[number] }
    func type(_ number: Int64) -> TypeName? { types[Int(number)] }
  }

  private func fill(_ tally: ReportTally, _ filter: ReportFilter, bucket: Int64) throws(StoreFailure) -> Names {
    var names = Names()
    guard let ids = filter.ids else { return names }
    let question = Self.question(filter, ids, bucket: tally.readsMetas ? nil : bucket)
    try ask { (connection, by) throws(PostgreSQLError) in
      try connection.read(question.sql, question.values, rowsPerPart: Self.rowsPerPart, by: by) {
        rows throws(PostgreSQLError) in
        for row in 0..<rows.count where !tally.isFull {
          let number = names.note(rows, row)
          var facts = ReportFacts(time: rows.int(row, 0), stream: number.stream, type: number.type)
          facts.text = ReportText(own: rows.bytes(row, 7))
          tally.add(facts, count: Int(rows.int(row, 6)))
        }
        return !tally.isFull
      }
    }
    return names
  }

  private static let rowsPerPart = 2000

  /// The facts of reports that a tally takes: the time, the stream and its names, the type, how many are alike, the meta.
  /// - Parameter bucket: where no metas are read, reports of one stream and type are counted by as many milliseconds; else nil.
  static func question(
    _ filter: ReportFilter, _ ids: ClosedRange<Int64>, bucket: Int64?
  ) -> (sql: String, values: [String?]) {
    let conditions = PostgreSQLConditions(filter)
    let wanted = ["r.id >= \(ids.lowerBound)", "r.id <= \(ids.upperBound)"] + conditions.sql
    let time = "(extract(epoch FROM r.received) * 1000)::bigint"
    let names = "s.device, s.namespace, s.kind::text"
    let from = "JOIN streams s ON s.id = r.stream WHERE \(wanted.joined(separator: " AND "))"
    guard let bucket else {
      return ("SELECT \(time), r.stream, \(names), r.type, 1, r.meta FROM whole_reports r \(from)", conditions.values)
    }
    let sql = """
      SELECT c.time, c.stream, \(names), c.type, c.number, '' FROM (
        SELECT \(time) / \(bucket) * \(bucket) AS time, r.stream, r.type, count(*) AS number FROM reports r \(from)
        GROUP BY 1, 2, 3) c JOIN streams s ON s.id = c.stream
      """
    return (sql, conditions.values)
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
