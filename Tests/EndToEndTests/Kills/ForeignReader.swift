import PrismSQLite
import PrismStore

/// Another program that reads the daemon's database all the time: a snapshot of it stays open over kills and starts, and
/// another connection checks its structure.
struct ForeignReader {
  let path: String
  /// The faults that the checks found.
  private(set) var faults: [String] = []
  private(set) var checks = 0
  private var reader: SQLiteConnection?

  init(_ path: String) { self.path = path }

  /// Looks until `isOver`.
  mutating func watch(until isOver: () -> Bool) async throws {
    var turn = 0
    while !isOver() {
      if turn % 10 == 0 { reader = snapshot() }
      check()
      turn += 1
      try await Task.sleep(for: .milliseconds(50))
    }
    reader = nil
  }

  private func snapshot() -> SQLiteConnection? {
    do {
      let connection = try SQLiteConnection(.init(path: path, isReadOnly: true))
      try connection.execute("BEGIN; SELECT count(*) FROM sqlite_schema")
      return connection
    } catch { return nil }  // it is not there, or just being set up
  }

  private mutating func check() {
    do throws(SQLiteError) {
      let connection = try SQLiteConnection(.init(path: path, isReadOnly: true))
      let found = try connection.firstText("PRAGMA quick_check(1)") ?? ""
      checks += 1
      if found != "ok" { faults.append(found) }
    } catch {
      if error.isCorruption { faults.append(error.description) }
    }
  }
}
