import Dispatch

/// SQLite's own check of a database's structure, on a connection and a queue of its own, so that reports are taken and
/// sent meanwhile. It reads the whole file: seconds a gigabyte.
enum IntegrityCheck {
  private static let queue = DispatchQueue(label: "prism.store.check", qos: .utility)

  enum Verdict: Sendable, Equatable {
    case sound
    /// What SQLite found first.
    case damaged(String)
    /// It could not be read; the store will notice by itself.
    case unknown
  }

  static func run(_ options: StoreOptions) async -> Verdict {
    let connection = SQLiteConnection.Options(path: options.databasePath, isReadOnly: true, vfs: options.vfs)
    return await withCheckedContinuation { continuation in
      queue.async { continuation.resume(returning: verdict(connection)) }
    }
  }

  private static func verdict(_ options: SQLiteConnection.Options) -> Verdict {
    do {
      let connection = try SQLiteConnection(options)
      connection.keepLogOnClose()
      try connection.execute("PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY")
      let found = try connection.firstText("PRAGMA quick_check(1)") ?? ""
      return found == "ok" ? .sound : .damaged(found)
    } catch {
      return error.isCorruption ? .damaged(error.description) : .unknown
    }
  }
}
