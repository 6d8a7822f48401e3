import Glibc
import PrismBase
import PrismProtocol
import PrismSQLite

/// The database of the rings in memory, attached as `mem`: a file in a folder in memory, which outlives the process and not the
/// machine (docs/recorder.md). A transaction that changes both files commits on the disk first.
struct MemoryDatabase {
  /// In `facts`: its folder; and the mark of the file that belongs to this boot, which the file has, too.
  static let folderKey = "memory.folder"
  private static let markKey = "memory.mark"

  /// A commit is for the process only, so nothing is synced. The file has one user, and its journal as few pages as possible.
  private static let setup = """
    PRAGMA mem.page_size = 4096; PRAGMA mem.locking_mode = EXCLUSIVE; PRAGMA mem.journal_mode = TRUNCATE;
    PRAGMA mem.synchronous = OFF; PRAGMA mem.secure_delete = FAST; PRAGMA mem.cache_size = -512;
    """
  private static let schema = """
    CREATE TABLE mem.facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
    CREATE TABLE mem.ledger AS SELECT * FROM ledger WHERE false;
    CREATE UNIQUE INDEX mem.ledger_queue ON ledger (namespace, kind);
    CREATE TABLE mem.client_ids AS SELECT * FROM client_ids WHERE false;
    CREATE UNIQUE INDEX mem.client_ids_key ON client_ids (namespace, report_id);
    CREATE INDEX mem.client_ids_delivered ON client_ids (delivered_time) WHERE delivered_time IS NOT NULL;
    """

  private let connection: SQLiteConnection
  private let options: StoreOptions
  private let folder: String
  private let path: String
  /// Of the file that belongs to the database and this boot; nil: there was no file.
  private let mark: String?

  /// nil: no namespace ever kept reports in memory.
  init?(_ connection: SQLiteConnection, _ options: StoreOptions) throws(SQLiteError) {
    guard let folder = try connection.fact(Self.folderKey) else { return nil }
    (self.connection, self.options, self.folder) = (connection, options, folder)
    mark = try connection.fact(Self.markKey)
    path = "\(folder)/\(try Epoch.read(connection).text).db"
  }

  /// Attaches the file, or a new one if there is no file of this boot. Without its folder the store works, but for these types.
  func attach() {
    // A fault that passes must not keep what is there out of reach.
    for isLast in [false, true] {
      do throws(SQLiteError) {
        if try !opensOwn() {
          remove()
          try open()
          try begin()
        }
        return options.log.faultEnded("memory", "reports are kept in memory again")
      } catch {
        try? connection.execute("DETACH mem")
        guard isLast else { continue }
        options.log.fault(
          "memory", "no report can be kept in memory: see to the folder that `memory` in prismd.yaml names",
          ["folder": folder, "error": error.description], level: .error)
      }
    }
  }

  /// Opens the file. - Returns: false: it is not of this boot, or damaged.
  private func opensOwn() throws(SQLiteError) -> Bool {
    do throws(SQLiteError) {
      try open()
      guard let mark, try connection.firstInt("SELECT count(*) FROM mem.sqlite_schema") ?? 0 > 0 else { return false }
      let found = try connection.firstText("SELECT value FROM mem.facts WHERE name = '\(Self.markKey)'")
      _ = try connection.records(of: LedgerRecord.self, from: "mem.ledger")
      return found == mark && mark.hasPrefix(options.bootID + " ")
    } catch {
      if error.isEnvironment { throw error }
      options.log.warning("the file of reports in memory is damaged", ["file": path, "error": error.description])
      return false
    }
  }

  private func open() throws(SQLiteError) {
    mkdir(folder, 0o700)
    try connection.prepare("ATTACH :path AS mem").run([":path": path])
    try connection.execute(Self.setup)
    chmod(path, 0o600)
  }

  /// The file can't be used: what was in it is lost.
  func remove() {
    try? connection.execute("DETACH mem")
    for suffix in ["", "-journal"] { unlink(path + suffix) }
  }

  /// A new file. The counts go on; what the last one held is counted as lost, in the transaction that marks the new one.
  private func begin() throws(SQLiteError) {
    var lostRows = 0
    try connection.transaction { () throws(SQLiteError) in
      try connection.execute(Self.schema)
      let mark = "\(options.bootID) \(UInt64.random(in: 0...(.max)))"
      try connection.setFact(Self.markKey, mark)
      try connection.prepare("INSERT INTO mem.facts VALUES (:name, :mark)").run([":name": Self.markKey, ":mark": mark])
      for (namespace, noted) in try connection.memoryNotes() {
        var note = noted
        note.losePower()
        lostRows +=
          note.ledgers.reduce(0) { $0 + $1[.lostWithPower] }
          - noted.ledgers.reduce(0) { $0 + $1[.lostWithPower] }
        let record = NoteRecord(namespace: namespace, key: MemoryNote.key, value: note.note)
        try connection.prepare(NoteRecord.insert(into: "notes", "OR REPLACE")).run(inserting: record)
        try QueueTables.createInMemory(namespace, connection)
        for queue in QueueID.all(of: namespace) {
          var ledger = LedgerRecord(queue: queue)
          (ledger.ledger, ledger.lastSequence) = (note.ledger(queue.kind), note.sequence)
          try connection.insertOrIgnore(ledger, into: "mem.ledger")
        }
      }
    }
    if lostRows > 0 {
      options.log.warning(
        "the machine was restarted, or its memory emptied: reports that were kept in memory are lost",
        ["rows": "\(lostRows)"])
    }
  }

  // MARK: After a failure

  /// The rows of a transaction that moved them to the disk, and that a kill kept from the second commit, leave memory.
  static func settle(_ database: StoreDatabase, _ memory: StoreMemory) throws(SQLiteError) {
    guard memory.state.memory.isAttached else { return }
    memory.touched.removeAll()  // of a transaction that failed
    try database.connection.transaction { () throws(SQLiteError) in
      let transaction = StoreTransaction(database: database, memory: memory)
      try transaction.forgetMoved()
      try transaction.writeLedgers()
    }
  }

  /// A file in memory that fails must not cost the one on the disk. - Returns: whether it was the cause, and is gone.
  static func isRemoved(
    for error: SQLiteError, _ memory: StoreMemory, _ database: StoreDatabase?, _ options: StoreOptions
  ) -> Bool {
    guard error.isCorruption, memory.state.memory.isAttached, let connection = database?.connection else {
      return false
    }
    connection.rollBack()
    if let found = try? connection.firstText("PRAGMA mem.quick_check(1)"), found == "ok" { return false }
    try? MemoryDatabase(connection, options)?.remove()
    return true
  }
}
