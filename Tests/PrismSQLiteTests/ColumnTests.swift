import PrismSQLite
import PrismTestSupport
import Testing

@Suite struct ColumnTests {
  private enum Note: String, SQLiteColumn { case number, name, madeTime, content }
  private enum Count: String, SQLiteColumn { case count = "count(*)" }

  private static func database(_ folder: TemporaryFolder) throws -> SQLiteConnection {
    let connection = try SQLiteConnection(.init(path: folder.path + "/a.db"))
    try connection.execute(
      "CREATE TABLE notes (number INTEGER PRIMARY KEY, name TEXT, made_time INTEGER, content BLOB)")
    return connection
  }

  private struct NoteRecord: SQLiteRecord {
    typealias Column = Note
    var number: Int64
    var name: String?
    var content: [UInt8]?

    func bind(to insert: SQLiteInsert<Note>) {
      insert.bind(.number, number)
      insert.bind(.name, name.sqlValue)
      insert.bind(.madeTime, number * 10)
      insert.bind(.content, content.sqlValue)
    }
  }

  @Test("a column's index is its place among the cases, also of one case alone") func indexes() {
    #expect(Note.allCases.map(\.index) == [0, 1, 2, 3])
    #expect(Count.count.index == 0)
    #expect(Note.list == "number, name, made_time, content")
    #expect(Note.list(before: .content) == "number, name, made_time")
  }

  private enum Named: String, SQLiteColumn {
    case id, hasClientIDs, reportID
    case newest = "max(t.lastID)"
    case number = "server_id"
  }

  @Test("a column has the name of its case with underscores, unless its case has another name or an expression")
  func names() {
    #expect(Named.list == "id, has_client_ids, report_id, max(t.lastID), server_id")
  }

  @Test(
    "the columns that a record binds are read by name: texts, bytes, empty ones, and NULL",
    arguments: [(String?.none, [UInt8]?.none), ("", []), ("ä\u{0}b", [0, 255]), ("a", nil)])
  func records(name: String?, content: [UInt8]?) throws {
    let folder = TemporaryFolder()
    let database = try Self.database(folder)
    #expect(try database.insertOrIgnore(NoteRecord(number: 7, name: name, content: content), into: "notes"))
    #expect(try !database.insertOrIgnore(NoteRecord(number: 7), into: "notes"), "the key is there already")
    let select = try database.prepare("SELECT \(Note.list) FROM notes WHERE number = :number")
    select.bind(":number", 7)
    let isRead = try select.first(of: Note.self) { row in
      #expect(row.string(.name) == name && row.data(.content) == content)
      #expect(row.isNull(.content) == (content == nil) && row.bytes(.content) == content ?? [])
      return row.int64(.number) == 7 && row.integer(.madeTime) == 70
    }
    #expect(isRead == true)
  }

  @Test("several rows of one statement keep their own values") func rows() throws {
    let folder = TemporaryFolder()
    let database = try Self.database(folder)
    let insert = try database.prepare(NoteRecord.insert(into: "notes", rows: 3))
    for row in 0..<3 {
      NoteRecord(number: Int64(row), name: "n\(row)").bind(
        to: SQLiteInsert(insert, row: row, columnCount: Note.allCases.count))
    }
    try insert.run()
    var names: [String] = []
    try database.prepare("SELECT \(Note.list) FROM notes ORDER BY number DESC").forEachRow(of: Note.self) {
      names.append($0.text(.name))
    }
    #expect(names == ["n2", "n1", "n0"])
    #expect(try database.prepare("SELECT \(Count.list) FROM notes").first(of: Count.self) { $0.int(.count) } == 3)
  }
}
