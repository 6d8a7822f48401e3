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
    findType = try connection.prepare("SELECT id FROM types WHERE namespace = :namespace AND type = :type")
    insertType = try connection.prepare("INSERT INTO types (namespace, type) VALUES (:namespace, :type) RETURNING id")
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
    var number: Int64?
    for statement in [findType, insertType] where number == nil {
      statement.bind(":namespace", namespace.text)
      statement.bind(":type", name)
      number = try statement.firstInt()
    }
    numbers[key] = number
    return number ?? 0
  }
}
