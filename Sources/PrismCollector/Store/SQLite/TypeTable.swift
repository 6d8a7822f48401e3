import PrismProtocol
import PrismSQLite

/// The table `types` of `collector.db`: a number for each type of a namespace.
struct TypeTable {
  private struct TypeName: Hashable { let namespace: NamespaceName, name: String }
  private static let keptMax = 10_000

  private let findType: SQLiteStatement, insertType: SQLiteStatement
  private var numbers: [TypeName: Int64] = [:]
  /// The rows of a packet often have one type: its number without a text or a look-up.
  private var last: (namespace: NamespaceName, name: ArraySlice<UInt8>, number: Int64)?

  init(_ connection: SQLiteConnection) throws(SQLiteError) {
    findType = try connection.prepare(
      """
      SELECT \(Column.list) FROM types n INDEXED BY types_name LEFT JOIN types t NOT INDEXED ON t.id = n.id
      WHERE n.namespace = :namespace AND n.type = :type
      """)
    insertType = try connection.prepare("INSERT INTO types (namespace, type) VALUES (:namespace, :type) RETURNING id")
  }

  private enum Column: String, SQLiteColumn {
    case id = "n.id"
    /// The table has the same name as its index.
    case isWhole = "t.namespace = n.namespace AND t.type = n.type"
  }

  mutating func number(of name: ArraySlice<UInt8>, _ namespace: NamespaceName) throws(SQLiteError) -> Int64 {
    if let last, last.name == name, last.namespace == namespace { return last.number }
    let number = try number(of: String(decoding: name, as: UTF8.self), namespace)
    last = (namespace, name, number)
    return number
  }

  /// Lets go of the bytes of the packet whose type was looked up last.
  mutating func forgetLast() { last = nil }

  mutating func number(of name: String, _ namespace: NamespaceName) throws(SQLiteError) -> Int64 {
    let key = TypeName(namespace: namespace, name: name)
    if let number = numbers[key] { return number }
    if numbers.count >= Self.keptMax { numbers = [:] }
    for statement in [findType, insertType] {
      statement.bind(":namespace", namespace.text)
      statement.bind(":type", name)
    }
    let found = try findType.first(of: Column.self) { (row) throws(SQLiteError) in
      guard row.bool(.isWhole) else { throw .differ("types", row.int64(.id)) }
      return row.int64(.id)
    }
    let number = if let found { found } else { try insertType.firstInt() }
    numbers[key] = number
    return number ?? 0
  }
}
