import Foundation
import PrismSQLite
import PrismTestSupport
import Testing

@Suite struct ConnectionTests {
  @Test("a transaction that throws leaves nothing") func rollsBack() throws {
    let folder = TemporaryFolder()
    let database = try SQLiteConnection(.init(path: folder.path + "/a.db"))
    try database.execute("CREATE TABLE a (b)")
    #expect(throws: SQLiteError.self) {
      try database.transaction { () throws(SQLiteError) in
        try database.execute("INSERT INTO a VALUES (1)")
        throw .diskFull("as if")
      }
    }
    #expect(try database.firstInt("SELECT count(*) FROM a") == 0)
    try database.transaction { () throws(SQLiteError) in try database.execute("INSERT INTO a VALUES (2)") }
    #expect(try database.firstInt("SELECT b FROM a") == 2)
  }

  @Test("migrations run once, in their order; one that fails leaves the version before it") func migrations() throws {
    let folder = TemporaryFolder()
    let database = try SQLiteConnection(.init(path: folder.path + "/a.db"))
    var list = [
      SQLiteMigration(version: 1, name: "a") { (db) throws(SQLiteError) in try db.execute("CREATE TABLE a (b)") },
      SQLiteMigration(version: 2, name: "c") { (db) throws(SQLiteError) in
        try db.execute("CREATE TABLE c (d)")
        throw .corrupt("as if")
      },
    ]
    var applied: [Int] = []
    #expect(throws: SQLiteError.self) { try database.migrate(list) { applied.append($0.version) } }
    #expect(try database.version() == 1)
    list[1] = SQLiteMigration(version: 2, name: "c") { (db) throws(SQLiteError) in
      try db.execute("CREATE TABLE c (d)")
    }
    for _ in 0..<2 { try database.migrate(list) { applied.append($0.version) } }
    #expect(try database.version() == 2)
    #expect(applied == [1, 2])
  }

  @Test("the integrity check tells a sound file from a damaged one, and from a missing one") func integrity() throws {
    let folder = TemporaryFolder()
    let path = folder.path + "/a.db"
    #expect(throws: SQLiteError.self) { try IntegrityCheck(path: path, vfs: nil).run() }
    do {
      let database = try SQLiteConnection(.init(path: path))
      try database.execute("CREATE TABLE a (b); CREATE INDEX a_b ON a (b)")
      for number in 0..<2000 { try database.execute("INSERT INTO a VALUES (\(number))") }
    }
    #expect(try IntegrityCheck(path: path, vfs: nil).run().isEmpty)
    try Damage.overwrite(path, at: 4096 + 3, with: [UInt8](repeating: 0xA5, count: 200))
    #expect(try IntegrityCheck(path: path, vfs: nil, faultsMax: 3).run().count >= 1)
  }

  @Test("the monitor counts the log's bytes from commit to checkpoint, and nothing else copies the log")
  func logMonitor() throws {
    let folder = TemporaryFolder()
    let database = try SQLiteConnection(.init(path: folder.path + "/a.db"))
    try database.execute("PRAGMA journal_mode = WAL; PRAGMA page_size = 4096; CREATE TABLE a (b)")
    let log = WriteAheadLogMonitor(database, pageBytes: 4096)
    for _ in 0..<8 { try database.execute("INSERT INTO a VALUES (zeroblob(1000000))") }
    #expect(log.bytes > 8_000_000)
    try log.checkpoint()
    #expect(log.bytes == 0)
    try database.execute("INSERT INTO a VALUES (1)")
    #expect(log.bytes > 0)
    log.empty()
    #expect(log.bytes == 0)
  }

  @Test("a backup has what was there when it was made") func backup() throws {
    let folder = TemporaryFolder()
    let source = try SQLiteConnection(.init(path: folder.path + "/a.db"))
    try source.execute("CREATE TABLE a (b); INSERT INTO a VALUES (zeroblob(100000)), (zeroblob(100000))")
    let backup = try SQLiteBackup(of: source, to: .init(path: folder.path + "/b.db"), pagesPerSlice: 8)
    var slices = 0
    while try backup.step() { slices += 1 }
    try backup.finish()
    #expect(slices > 3)
    let copy = try SQLiteConnection(.init(path: folder.path + "/b.db", isReadOnly: true))
    #expect(try copy.firstInt("SELECT sum(length(b)) FROM a") == 200_000)
  }
}

private enum Damage {
  static func overwrite(_ path: String, at offset: UInt64, with bytes: [UInt8]) throws {
    let file = try FileHandle(forUpdating: URL(filePath: path))
    try file.seek(toOffset: offset)
    try file.write(contentsOf: bytes)
    try file.close()
  }
}
