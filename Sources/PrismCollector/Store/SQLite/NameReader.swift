import PrismProtocol
import PrismSQLite

/// Reads the names of streams and types of `collector.db` on one connection, most of them once. A report's checksum covers
/// their numbers only, so each name is compared with its second copy: the one in the unique index of its table.
final class NameReader {
  private let streams: NameTable<StreamID>, types: NameTable<TypeName>
  private var filter = ReportFilter()
  /// Whether the streams and types of the statement have the names of the filter, by their numbers.
  private var areStreamsNamed: [Int64: Bool] = [:], areTypesNamed: [Int64: Bool] = [:]
  private var last: (stream: Int64, type: Int64, isNamed: Bool)?

  init(_ connection: SQLiteConnection) throws(SQLiteError) {
    streams = try NameTable(connection, "streams", ["device", "namespace", "kind"]) { row in
      guard let namespace = NamespaceName(row.text(.second)), let kind = RowKind(named: row.text(.third)) else {
        return nil
      }
      return StreamID(device: row.text(.first), namespace: namespace, kind: kind)
    }
    types = try NameTable(connection, "types", ["namespace", "type"]) { row in
      TypeName(namespace: row.text(.first), type: row.text(.second))
    }
  }

  /// - Returns: nil: there is no such stream.
  /// - Throws: damage, if its two copies differ.
  func stream(_ id: Int64) throws(SQLiteError) -> StreamID? { try streams.name(id) }

  /// - Returns: nil: there is no such type.
  /// - Throws: damage, if its two copies differ.
  func type(_ id: Int64) throws(SQLiteError) -> TypeName? { try types.name(id) }

  // MARK: Filters

  /// Before reports are asked for the names of a filter.
  func begin(_ filter: ReportFilter) {
    (self.filter, areStreamsNamed, areTypesNamed, last) = (filter, [:], [:], nil)
  }

  /// Whether a report of this stream and type has the names of the filter.
  func isNamed(_ stream: Int64, _ type: Int64) throws(SQLiteError) -> Bool {
    if let last, last.stream == stream, last.type == type { return last.isNamed }
    let isNamed = if try isStreamNamed(stream) { try isTypeNamed(type) } else { false }
    last = (stream, type, isNamed)
    return isNamed
  }

  private func isStreamNamed(_ id: Int64) throws(SQLiteError) -> Bool {
    if let known = areStreamsNamed[id] { return known }
    var isNamed = true
    if filter.device ?? filter.namespace ?? filter.kind != nil {
      let name = try stream(id)
      isNamed = name.map { self.isNamed($0) } ?? false
    }
    areStreamsNamed[id] = isNamed
    return isNamed
  }

  private func isNamed(_ name: StreamID) -> Bool {
    let (namespace, kind) = (name.namespace.text, name.kind.name)
    return (filter.device ?? name.device) == name.device && (filter.namespace ?? namespace) == namespace
      && (filter.kind ?? kind) == kind
  }

  private func isTypeNamed(_ id: Int64) throws(SQLiteError) -> Bool {
    if let known = areTypesNamed[id] { return known }
    let isNamed = if let wanted = filter.type { try type(id)?.type == wanted } else { true }
    areTypesNamed[id] = isNamed
    return isNamed
  }

  // MARK: Blocks

  /// The blocks of reports that have the device of a filter, or its type and namespace, in their order.
  /// - Returns: nil: the filter has no such name, so any block may.
  func blocks(
    _ filter: ReportFilter, from first: Int64, to last: Int64, isNewestFirst: Bool, _ connection: SQLiteConnection
  ) throws(SQLiteError) -> [Int64]? {
    let range = first...last
    if filter.device != nil {
      return try streams.blocks(
        ["device": filter.device, "namespace": filter.namespace, "kind": filter.kind], "stream", range, isNewestFirst,
        connection)
    }
    guard filter.type != nil || filter.namespace != nil else { return nil }
    return try types.blocks(
      ["type": filter.type, "namespace": filter.namespace], "type", range, isNewestFirst, connection)
  }
}

/// The columns of names: as many as the table has, and the number that the index has for them.
private enum NameColumn: String, SQLiteColumn { case copy, first, second, third }

/// `streams` or `types`, whose names an index has a second time.
private final class NameTable<Name> {
  private static var knownMax: Int { 16_384 }

  private let find: SQLiteStatement, findCopy: SQLiteStatement
  private let table: String, columns: [String]
  private let read: (SQLiteRow<NameColumn>) -> Name?
  /// Names never change, and numbers are never given out again.
  private var known: [Int64: Name?] = [:]
  private var last: (id: Int64, name: Name?)?

  /// - Parameter columns: of the names, as the index has them.
  init(
    _ connection: SQLiteConnection, _ table: String, _ columns: [String],
    _ read: @escaping (SQLiteRow<NameColumn>) -> Name?
  ) throws(SQLiteError) {
    (self.table, self.columns, self.read) = (table, columns, read)
    let names = columns.map { "t.\($0)" }.joined(separator: ", ")
    let same = columns.map { "n.\($0) = t.\($0)" }.joined(separator: " AND ")
    find = try connection.prepare(
      """
      SELECT n.id, \(names) FROM \(table) t NOT INDEXED
      LEFT JOIN \(table) n INDEXED BY \(table)_name ON \(same) WHERE t.id = :id
      """)
    findCopy = try connection.prepare(
      """
      SELECT 1 FROM \(table) INDEXED BY \(table)_name WHERE +id = :id
      ORDER BY \(columns.joined(separator: ", ")) LIMIT 1
      """)
  }

  func name(_ id: Int64) throws(SQLiteError) -> Name? {
    if let last, last.id == id { return last.name }
    let name: Name?
    if let found = known[id] {
      name = found
    } else {
      name = try readBoth(id)
      if known.count >= Self.knownMax { known = [:] }
      known.updateValue(name, forKey: id)
    }
    last = (id, name)
    return name
  }

  private func readBoth(_ id: Int64) throws(SQLiteError) -> Name? {
    var isFound = false
    find.bind(":id", id)
    let name = try find.first(of: NameColumn.self) { (row) throws(SQLiteError) -> Name? in
      guard row.integer(.copy) == id else { throw differ(id) }
      isFound = true
      return read(row)
    }
    if isFound { return name }
    findCopy.bind(":id", id)
    if try findCopy.hasRow() { throw differ(id) }
    return nil
  }

  private func differ(_ id: Int64) -> SQLiteError { .differ(table, id) }

  private enum IDColumn: String, SQLiteColumn { case id }
  private enum BlockColumn: String, SQLiteColumn { case block }

  /// The blocks of all rows with these texts, in their order. - Parameter key: the column of the blocks that has the row's number.
  func blocks(
    _ wanted: KeyValuePairs<String, String?>, _ key: String, _ range: ClosedRange<Int64>, _ isNewestFirst: Bool,
    _ connection: SQLiteConnection
  ) throws(SQLiteError) -> [Int64] {
    let parameters: [StaticString] = [":text0", ":text1", ":text2"]
    let given = wanted.compactMap { column, text in text.map { (column, $0) } }
    let conditions = zip(given, parameters).map { "\($0.0) = \($1)" }.joined(separator: " AND ")
    let named = "SELECT id FROM \(table) INDEXED BY \(table)_name WHERE \(conditions)"
    let ids = try connection.prepare("\(named) ORDER BY \(columns.joined(separator: ", "))")
    let found = try connection.prepare(
      """
      SELECT DISTINCT \(BlockColumn.list) FROM \(key)_blocks
      WHERE \(key) IN (\(named)) AND block BETWEEN \(range.lowerBound) AND \(range.upperBound)
      ORDER BY 1 \(isNewestFirst ? "DESC" : "ASC")
      """)
    for statement in [ids, found] {
      for (text, parameter) in zip(given, parameters) { statement.bind(parameter, text.1) }
    }
    var (numbers, blocks): ([Int64], [Int64]) = ([], [])
    try ids.forEachRow(of: IDColumn.self) { numbers.append($0.int64(.id)) }
    for id in numbers { _ = try name(id) }
    try found.forEachRow(of: BlockColumn.self) { blocks.append($0.int64(.block)) }
    return blocks
  }
}

extension SQLiteError {
  /// A name in `streams` or `types` is not what its index has.
  static func differ(_ table: String, _ id: Int64) -> SQLiteError {
    .corrupt("row \(id) of \(table) has another name in its index")
  }
}
