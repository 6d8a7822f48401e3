import Glibc
import PrismBase
public import PrismSQL
import PrismSQLite

/// Copies of the collector's databases, and the way back to one (docs/backup.md). Blocks for as long as the disk does.
public struct StoreBackup {
  /// Why nothing was copied or restored. `description` says what to do.
  public struct Fault: Error, CustomStringConvertible {
    public let description: String
    /// The folder of the copies is not as it must be.
    public var isOfTarget = false
  }

  /// Numbers of records and reports that a restored store passes over: it may have given them after the copy.
  private static let (recordsLeap, reportsLeap) = (Int64(1) << 20, Int64(1) << 30)
  /// The same of remote configuration, which devices take from a later version only. They take a step of a million. Changes
  /// since any time before now are forgotten, so that each device gets all of it.
  private static var versionLeap: String {
    let now = SystemTime().unixMilliseconds & ~1
    return """
      UPDATE remote_facts SET value = value + 1000 WHERE name = 'version' AND value > 0;
      UPDATE remote_facts SET value = CASE WHEN value + 2 > \(now) THEN value + 2 ELSE \(now) END
        WHERE name = 'update_time' AND value > 0;
      INSERT INTO remote_facts SELECT 'forgotten_time', value FROM remote_facts WHERE name = 'update_time'
        ON CONFLICT (name) DO UPDATE SET value = excluded.value;
      """
  }
  private static let reports = "collector.db"
  private static let names = [reports, FleetDatabase.fileName]

  private let state: String

  /// - Parameter state: the folder of a collector with SQLite.
  public init(state: String) { self.state = state }

  // MARK: To a folder

  /// Copies the databases, which a collector may use meanwhile. Each copy is checked, and at rest when this returns.
  /// - Parameter folder: it is made, and those above it; it may hold no copy yet.
  /// - Throws: `Fault`.
  public func copy(to folder: String, _ say: (String) -> Void) throws {
    try Folder.make(folder)
    try Folder.sync(folder)  // it is a folder
    for name in Self.names where access("\(folder)/\(name)", F_OK) == 0 {
      throw Fault(
        description: "\(folder)/\(name) is there already: name another folder, such as one with the date",
        isOfTarget: true
      )
    }
    for name in Self.names {
      guard access("\(state)/\(name)", F_OK) == 0 else {
        throw Self.fault("\(state)/\(name)", "can't be read", errno)
      }
      let part = "\(folder)/\(name).part"
      unlink(part)  // of a copy that was interrupted
      try Self.copy("\(state)/\(name)", to: part)
      try Self.move(part, to: "\(folder)/\(name)")
      say("\(name) is copied to \(folder), and has no fault")
    }
    try Folder.sync(folder)
    if DatabaseFiles(folder: state).isCarried {
      say("the store of \(state) was carried to another database: this copy has nothing that came since")
    }
  }

  // MARK: From a folder

  /// Puts copies in the place of the databases of a collector that is stopped. The old ones are kept in a folder beside them.
  /// An interrupted run is run again.
  /// - Parameter now: names that folder: milliseconds since 1970.
  /// - Throws: `Fault`, before anything was replaced; or what the disk says.
  public func restore(from folder: String, now: Int64, _ say: (String) -> Void) throws {
    let lock = try StateLock(folder: state)
    defer { withExtendedLifetime(lock) {} }
    guard !DatabaseFiles(folder: state).isCarried else {
      throw Fault(
        description: "the store of \(state) was carried to another database: delete the file `carried` in it to use it "
          + "again")
    }
    let names = Self.names.filter { access("\(folder)/\($0)", F_OK) == 0 }
    guard names.contains(Self.reports) else {
      throw Fault(description: "\(folder) has no \(Self.reports): name the folder of `prism-collector backup`")
    }
    for name in names {
      unlink(restored(name))
      try Self.copy("\(folder)/\(name)", to: restored(name))
    }
    // Another version is found out here, while all is as it was.
    guard try DatabaseOpening.hasTables(restored(Self.reports), nil) else {
      throw Fault(description: "\(folder)/\(Self.reports) is no database of a collector")
    }
    if names.contains(FleetDatabase.fileName) {
      let fleet = try SQLiteConnection(.init(path: restored(FleetDatabase.fileName)))
      guard try FleetSchema.isWhole(fleet) else {
        throw Fault(description: "\(folder)/\(FleetDatabase.fileName) is no database of a collector")
      }
      try FleetSchema.prepare(fleet)
      try fleet.execute(Self.versionLeap)
    }
    try leap(PacketDatabase(path: restored(Self.reports)).connection)
    let aside = "\(state)/before-restore-\(now)"
    guard mkdir(aside, 0o700) == 0 else { throw Self.fault(aside, "can't be made", errno) }
    for name in names {
      // A log of the old database would be taken for one of the copy.
      for suffix in ["-wal", "-shm"] { rename("\(state)/\(name)\(suffix)", "\(aside)/\(name)\(suffix)") }
      let isKept = link("\(state)/\(name)", "\(aside)/\(name)") == 0
      guard isKept || errno == ENOENT else { throw Self.fault("\(state)/\(name)", "can't be kept in \(aside)", errno) }
      try Self.move(restored(name), to: "\(state)/\(name)")
      say("\(name) is the copy in \(folder)" + (isKept ? "; the one before it is in \(aside)" : ""))
    }
    for name in Self.names where !names.contains(name) { say("\(name) stays: \(folder) has no copy of it") }
    try Folder.sync(aside)
    try Folder.sync(state)
  }

  private func restored(_ name: String) -> String { "\(state)/\(name).restored" }

  /// Devices know numbers that the copy does not: those that it gives from now on lie behind them, and each device asks for
  /// all records once.
  private func leap(_ connection: SQLiteConnection) throws(SQLiteError) {
    try connection.execute(
      """
      BEGIN;
      UPDATE sqlite_sequence SET seq = seq + \(Self.recordsLeap) WHERE name = 'records';
      REPLACE INTO record_sequences VALUES ('', unixepoch() * 1000);
      UPDATE record_sequences SET seq = (SELECT seq FROM record_sequences WHERE namespace = '');
      UPDATE record_tables SET seq = (SELECT seq FROM record_sequences WHERE namespace = '');
      REPLACE INTO facts SELECT 'newest_report', \(Self.reportsLeap) + max(
        coalesce((SELECT max(last) FROM blocks), 0), coalesce((SELECT value FROM facts WHERE name = 'newest_report'), 0));
      UPDATE facts SET value = value + 1 WHERE name = 'store_life';
      COMMIT;
      """)
  }

  /// The same for a PostgreSQL that was restored with its own tools. No collector uses it.
  public static func leap(_ target: PostgreSQLTarget) throws {
    let connection = try PostgreSQLSetup(target: target, deadline: .seconds(60)).connect()
    let by = Deadline(.seconds(3600))
    _ = try connection.transaction(by: by) { () throws(PostgreSQLError) in
      try connection.execute(
        """
        SELECT setval(s::regclass, nextval(s::regclass) + \(recordsLeap)) FROM pg_get_serial_sequence('records', 'server_id') s;
        SELECT setval('report_blocks', nextval('report_blocks') + \(reportsLeap >> PostgreSQLSchema.blockBits));
        INSERT INTO record_sequences VALUES ('', extract(epoch FROM now())::bigint * 1000)
          ON CONFLICT (namespace) DO UPDATE SET seq = excluded.seq;
        UPDATE record_sequences SET seq = (SELECT seq FROM record_sequences WHERE namespace = '');
        UPDATE record_tables SET seq = (SELECT seq FROM record_sequences WHERE namespace = '');
        UPDATE store_mark SET life = life + 1;
        \(versionLeap)
        """, by: by)
    }
  }

  // MARK: Files

  private static func copy(_ source: String, to target: String) throws {
    do {
      let connection = try SQLiteConnection(.init(path: source, isReadOnly: true))
      try connection.execute("VACUUM INTO '\(target.replacing("'", with: "''"))'")
    } catch { throw Fault(description: "\(source) can't be copied: \(error)") }
    if let damage = try IntegrityCheck(path: target, vfs: nil).run().first {
      unlink(target)
      throw Fault(description: "\(source) is damaged: \(damage)")
    }
  }

  /// The file is the folder's owner's, also where root runs the command, and on the disk before it has its name.
  private static func move(_ source: String, to target: String) throws {
    Folder.giveToOwner(source, of: FilePath.folder(of: target))
    let descriptor = open(source, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw fault(source, "can't be opened", errno) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw fault(source, "can't be synced", errno) }
    guard rename(source, target) == 0 else { throw fault(target, "can't be replaced", errno) }
  }

  private static func fault(_ path: String, _ what: String, _ code: Int32) -> Fault {
    Fault(description: "\(path) \(what): \(String(cString: strerror(code)))")
  }
}
