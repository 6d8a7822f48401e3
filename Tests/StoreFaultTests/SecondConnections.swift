import CFaultVFS
import PrismSQLite
import PrismStore
import PrismTestSupport
import Synchronization

/// The work of other programs on the store's file while it works. A reader keeps a snapshot open, so that checkpoints
/// stop before it. Another connection checks the file's structure and counts its rows against the ledger. Both use the
/// system's VFS, so that they see the bytes that the store has handed down and nothing else.
final class SecondConnections: Sendable {
  private struct State: ~Copyable {
    var reader: SQLiteConnection?
    var checker: SQLiteConnection?
    var random: SeededRandom
    var checks = 0
    var faults: [String] = []
  }

  private let path: String
  private let state: Mutex<State>

  init(_ folder: FaultFolder, seed: UInt64) {
    path = folder.path + "/prism.db"
    state = Mutex(State(random: SeededRandom(seed: seed)))
  }

  /// The faults that the checks found; at most five.
  var faults: [String] { state.withLock { $0.faults } }
  /// Checks that could read the file.
  var checks: Int { state.withLock { $0.checks } }

  /// Opens the reader's snapshot, ends it or leaves it, as drawn; then checks.
  func takeTurn() {
    state.withLock { state in
      if state.reader == nil {
        state.reader = snapshot()
      } else if state.random.oneIn(4) {
        state.reader = nil
      }
    }
    check()
  }

  /// Checks after every I/O call of the store that changes a file, too, until `body` ends.
  func watching<Result>(_ body: () async throws -> Result) async rethrows -> Result {
    fvfs_on_change(
      { context in
        guard let context else { return }
        Unmanaged<SecondConnections>.fromOpaque(context).takeUnretainedValue().check()
      }, Unmanaged.passUnretained(self).toOpaque())
    defer { fvfs_on_change(nil, nil) }
    return try await body()
  }

  /// Closes both.
  func leave() { state.withLock { ($0.reader, $0.checker) = (nil, nil) } }

  /// nil: the file is not there yet, or just locked.
  private func snapshot() -> SQLiteConnection? {
    guard let connection = connect() else { return nil }
    do { try connection.execute("BEGIN; SELECT count(*) FROM sqlite_schema") } catch { return nil }
    return connection
  }

  /// A lock is not waited for: the store may hold it in the very call that this check runs in.
  private func connect() -> SQLiteConnection? {
    do {
      let connection = try SQLiteConnection(.init(path: path, isReadOnly: true))
      try connection.execute("PRAGMA busy_timeout = 0; PRAGMA cell_size_check = ON")
      return connection
    } catch { return nil }
  }

  func check() {
    state.withLock { state in
      if state.checker == nil { state.checker = connect() }
      guard let checker = state.checker else { return }
      do throws(SQLiteError) {
        let found = try Self.faults(checker)
        state.checks += 1
        if let found, state.faults.count < 5 { state.faults.append(found) }
      } catch {
        // Locked, or not made yet.
        if error.isCorruption && state.faults.count < 5 { state.faults.append(error.description) }
        state.checker = nil
      }
    }
  }

  private enum TableColumn: String, SQLiteColumn { case name }

  /// Of all tables of the metas, delivered rows among them.
  private static func rowCount(_ connection: SQLiteConnection) throws(SQLiteError) -> Int64 {
    var tables: [String] = []
    let select = try connection.prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND (name = 'm1' OR name GLOB 'm1_[0-9]*')")
    try select.forEachRow(of: TableColumn.self) { tables.append($0.text(.name)) }
    var count: Int64 = 0
    for table in tables { count += try connection.firstInt("SELECT count(*) FROM \(table)") ?? 0 }
    return count
  }

  /// The fault of one snapshot of the file; nil: nothing.
  private static func faults(_ connection: SQLiteConnection) throws(SQLiteError) -> String? {
    try connection.execute("BEGIN")
    defer { try? connection.execute("ROLLBACK") }  // a failed read may have ended it
    let structure = try connection.firstText("PRAGMA quick_check(1)") ?? "no answer"
    if structure != "ok" { return structure }
    guard try connection.firstInt("SELECT count(*) FROM sqlite_schema WHERE name = 'm1'") == 1 else { return nil }
    let counted = try connection.firstInt(
      """
      SELECT waiting + claimed + kept + coalesce((SELECT sum(value) FROM json_each(segments) WHERE key > 0 AND key % 5 = 4), 0)
      FROM ledger WHERE namespace = 1 AND kind = 0
      """)
    let found = try rowCount(connection)
    let isSalvaging = try connection.firstInt("SELECT count(*) FROM facts WHERE name = 'salvage'") == 1
    guard let counted, found > counted || found < counted && !isSalvaging else { return nil }
    return "\(found) rows, and the ledger says \(counted)"
  }
}
