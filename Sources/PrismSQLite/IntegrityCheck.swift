import Dispatch

/// SQLite's own check of a database's structure, over a connection of its own. It reads the whole file: seconds a gigabyte.
public struct IntegrityCheck: Sendable {
  private static let queue = DispatchQueue(label: "prism.sqlite.check", qos: .utility)

  private let connection: SQLiteConnection.Options
  private let faultsMax: Int

  /// - Parameter faultsMax: after as many it stops.
  public init(path: String, vfs: String?, faultsMax: Int = 1) {
    connection = SQLiteConnection.Options(path: path, isReadOnly: true, vfs: vfs)
    self.faultsMax = faultsMax
  }

  /// Blocks until it is done. Another connection may use the file meanwhile.
  /// - Returns: what is wrong, in SQLite's words; empty: the structure is sound.
  /// - Throws: if the file can't be read, which says nothing of its structure.
  public func run() throws(SQLiteError) -> [String] {
    do throws(SQLiteError) {
      let connection = try SQLiteConnection(connection)
      connection.keepLogOnClose()
      try connection.execute("PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY")
      var faults: [String] = []
      try connection.prepare("PRAGMA quick_check(\(faultsMax))").forEachRow(of: Column.self) {
        faults.append($0.text(.fault))
      }
      return faults == ["ok"] ? [] : faults
    } catch {
      guard error.isCorruption else { throw error }
      return [error.description]
    }
  }

  private enum Column: String, SQLiteColumn { case fault }

  /// Runs on a queue of its own.
  public func runInBackground() async -> Result<[String], SQLiteError> {
    await withCheckedContinuation { continuation in
      Self.queue.async {
        continuation.resume(returning: Result { () throws(SQLiteError) in try run() })
      }
    }
  }
}
