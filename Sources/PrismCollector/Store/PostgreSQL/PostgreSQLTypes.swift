import PrismProtocol

/// The table `types`: the types of each namespace, and the last day of each, so that no question for names reads reports.
///
/// A replica writes a type once a day, within the transaction of its first report. Types that were not seen for as long as
/// reports are kept are forgotten with them.
struct PostgreSQLTypes {
  static let schema = """
    CREATE TABLE types (namespace text COLLATE "C", type text COLLATE "C", seen date NOT NULL, PRIMARY KEY (namespace, type));

    """
  static let list = "SELECT namespace, type FROM types ORDER BY 1, 2"

  /// An index holds no text of any length.
  private static let typeBytesMax = 512
  private static let keptMax = 10_000
  private static let dayMicroseconds: Int64 = 86_400_000_000

  /// Those that are noted for `day`, in days since 2000.
  private var noted: Set<TypeName> = []
  private var day: Int64 = .min
  private var found: Set<TypeName> = []
  /// The rows of a packet often have one type: no text is made of it again.
  private var last: (namespace: NamespaceName, type: ArraySlice<UInt8>)?

  /// Begins a transaction. - Parameter received: its time, microseconds since 2000.
  mutating func begin(received: Int64) {
    (found, last) = ([], nil)
    if received / Self.dayMicroseconds != day || noted.count > Self.keptMax { noted = [] }
    day = received / Self.dayMicroseconds
  }

  mutating func note(_ type: ArraySlice<UInt8>, _ namespace: NamespaceName) {
    if let last, last.type == type, last.namespace == namespace { return }
    last = (namespace, type)
    guard type.count <= Self.typeBytesMax else { return }
    let name = TypeName(namespace: namespace.text, type: String(decoding: type, as: UTF8.self))
    if !noted.contains(name) { found.insert(name) }
  }

  /// Writes the types that are new today, in one order, so that two replicas never wait for each other.
  mutating func write(_ connection: PostgreSQLConnection, by deadline: Deadline) throws(PostgreSQLError) {
    last = nil
    guard !found.isEmpty else { return }
    let names = Array(found)
    _ = try connection.query(
      """
      INSERT INTO types (namespace, type, seen)
      SELECT n.namespace, n.type, (now() AT TIME ZONE 'UTC')::date FROM unnest($1::text[], $2::text[]) n (namespace, type)
      ORDER BY n.namespace COLLATE "C", n.type COLLATE "C"
      ON CONFLICT (namespace, type) DO UPDATE SET seen = excluded.seen WHERE types.seen < excluded.seen
      """,
      [PostgreSQLArray.text(names.map(\.namespace)), PostgreSQLArray.text(names.map(\.type))], by: deadline)
    noted.formUnion(found)
  }

  /// Forgets those whose reports are gone.
  static func forget(olderThan days: Int) -> String {
    "DELETE FROM types WHERE seen < (now() AT TIME ZONE 'UTC')::date - \(days) - 1"
  }
}
