import PrismSQL
import PrismSQLite
import PrismTestSupport
import Testing

@Suite struct SQLSessionTests {
  private enum Note: String, SQLiteColumn { case number, name }

  private static let table = SQLTable("notes", ["number bigint!", "name text"], key: "number")

  private static func session(_ folder: TemporaryFolder) -> SQLSession {
    SQLSession {
      let driver = try SQLiteDriver(path: folder.path + "/notes.db")
      try driver.connection.execute(table.sqlite)
      return driver
    }
  }

  @Test("a result that does not commit leaves no trace, nor does an error") func leavesNothing() throws {
    let folder = TemporaryFolder()
    let session = Self.session(folder)
    let add = { (statements: SQLStatements) in
      try statements.insert(Note.self, into: "notes", [1, "a"])
      return try #require(try statements.integer("SELECT count(*) FROM notes"))
    }
    #expect(try session.perform(isWriting: true, commits: { $0 > 1 }, add) == 1)
    #expect(throws: TestError.self) {
      try session.perform(isWriting: true) {
        _ = try add($0)
        throw TestError()
      }
    }
    #expect(try session.perform(isWriting: true, add) == 1, "the row before is there")
    #expect(try session.perform(isWriting: false) { try $0.first(of: Note.self, "FROM notes")?.text(.name) } == "a")
  }

  @Test("rows are inserted and found in statements of few sizes", arguments: [1, 15, 17, 145, 300])
  func chunks(count: Int) throws {
    let folder = TemporaryFolder()
    try Self.session(folder).perform(isWriting: true) { statements in
      try statements.insert(Note.self, into: "notes", rows: (0..<count).map { [$0, "n\($0)"] })
      let found = try statements.rows(
        of: Note.self, from: "notes", key: ["number"], in: (0..<count * 2).map { [$0] }, where: "name <> $1", ["n0"])
      #expect(found.map { $0.int(.number) }.sorted() == Array(1..<max(count, 1)))
      #expect(found.allSatisfy { $0.string(.name) == "n\($0.int(.number))" })
    }
  }

  private struct TestError: Error {}
}
