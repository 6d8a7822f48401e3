import Foundation
import PrismRecovery
import PrismSQLite
import PrismTestSupport
import Testing

@Suite struct DamagedDatabaseTests {
  private enum Column: String, SQLiteColumn { case id, name, size, content }

  private static let rows: Int64 = 3000

  /// A database of 4 KiB pages with one table of 3,000 rows, some with overflow pages.
  private static func make(_ path: String) throws {
    let database = try SQLiteConnection(.init(path: path))
    try database.execute(
      """
      PRAGMA page_size = 4096; PRAGMA auto_vacuum = INCREMENTAL;
      CREATE TABLE things (id INTEGER PRIMARY KEY, name TEXT, size INTEGER, content BLOB);
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(rows))
      INSERT INTO things SELECT i, 'thing ' || i, -i, iif(i % 100 = 0, zeroblob(9000), x'01FF') FROM n
      """)
  }

  /// Every record that is read is what was written. - Returns: how many were read.
  private static func readAll(_ path: String) throws -> Int {
    let source = try #require(DamagedDatabase(path: path, required: ["things"], roots: nil))
    var found: Set<Int64> = []
    source.forEachRecord(of: "things") { record in
      let row = record.row(of: Column.self)
      guard let id = row.integer(.id), row.string(.name) == "thing \(id)", row.integer(.size) == -id else { return }
      let content = row.data(.content)
      if content == (id % 100 == 0 ? [UInt8](repeating: 0, count: 9000) : [1, 0xFF]) { found.insert(id) }
    }
    return found.count
  }

  @Test("a sound database is read completely, overflow pages included") func sound() throws {
    let folder = TemporaryFolder()
    try Self.make(folder("a.db"))
    #expect(try Self.readAll(folder("a.db")) == Self.rows)
    let source = try #require(DamagedDatabase(path: folder("a.db"), required: ["things"], roots: nil))
    #expect(source.isOfThisKind)
    var ids: [Int64] = []
    source.forEachRow(of: "things", [7, 2999, 5000]) { ids.append($0.id) }
    #expect(ids.sorted() == [7, 2999])
    let other = try #require(DamagedDatabase(path: folder("a.db"), required: ["others"], roots: nil))
    #expect(!other.isOfThisKind)
  }

  @Test("one destroyed page costs the rows on it, and no others", arguments: [4, 9, 20])
  func onePage(page: Int) throws {
    let folder = TemporaryFolder()
    try Self.make(folder("a.db"))
    let file = try FileHandle(forUpdating: URL(filePath: folder("a.db")))
    try file.seek(toOffset: UInt64(page - 1) * 4096)
    try file.write(contentsOf: [UInt8](repeating: 0xA5, count: 4096))
    try file.close()
    let found = try Self.readAll(folder("a.db"))
    #expect(found < Int(Self.rows) && found > Int(Self.rows) - 300)
  }

  @Test("a file that is no database has no records, nor has a missing file") func foreign() throws {
    let folder = TemporaryFolder()
    try folder.write(String(repeating: "not a database. ", count: 2000), to: "a.db")
    #expect(try Self.readAll(folder("a.db")) == 0)
    #expect(DamagedDatabase(path: folder("none.db"), required: [], roots: nil) == nil)
  }
}
