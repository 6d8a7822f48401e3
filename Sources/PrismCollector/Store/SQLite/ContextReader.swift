import PrismPacket
import PrismSQLite

/// Reads the table `contexts` of `collector.db` on one connection, most of them once.
final class ContextReader {
  private static let (countMax, bytesMax) = (1024, 1_048_576)

  private let connection: SQLiteConnection
  private let find: SQLiteStatement, findCopy: SQLiteStatement
  /// A page that can't be read is passed over.
  private let isOfDamaged: Bool
  /// Ids are never given out again.
  private var texts: [Int64: [UInt8]] = [:]
  private var bytes = 0
  private var last: (id: Int64, text: [UInt8])?

  private enum Column: String, SQLiteColumn { case hash, common }

  /// - Parameter isOfDamaged: the database was set aside.
  init(_ connection: SQLiteConnection, isOfDamaged: Bool = false) throws(SQLiteError) {
    (self.connection, self.isOfDamaged) = (connection, isOfDamaged)
    find = try connection.prepare("SELECT \(Column.list) FROM contexts WHERE id = :id")
    findCopy = try connection.prepare(
      "SELECT \(Column.list) FROM contexts INDEXED BY contexts_copy WHERE +id = :id ORDER BY hash")
  }

  /// - Returns: nil: it is not there, or not what was written.
  func common(_ id: Int64) throws(SQLiteError) -> [UInt8]? {
    if let last, last.id == id { return last.text }
    let known = if let known = texts[id] { known } else { try read(id) }
    guard let text = known else { return nil }
    last = (id, text)
    return text
  }

  private func read(_ id: Int64) throws(SQLiteError) -> [UInt8]? {
    var text: [UInt8]?
    for statement in [find, findCopy] where text == nil {
      statement.bind(":id", id)
      do throws(SQLiteError) {
        text = try statement.first(of: Column.self) { row in
          let text = row.bytes(.common)
          return (try? CommonInformation.hash(of: text)) == row.int64(.hash) ? text : nil
        }
      } catch { if !isOfDamaged || !error.isDamage { throw error } }
    }
    if let text {
      if texts.count >= Self.countMax || bytes + text.count > Self.bytesMax { (texts, bytes) = ([:], 0) }
      texts[id] = text
      bytes += text.count
    }
    return text
  }
}
