import Glibc
import PrismBase
public import PrismSQLite

/// Where a database is, with the files that go with it. It is set aside there under a name with the time, and a kill at any
/// point neither loses a file nor takes it for another database's.
public struct DatabasePlace: Sendable {
  /// The state folder.
  public let folder: String
  /// Of the file in it.
  public let name: String
  private let pageBytes: Int
  private let companions: [String]
  private let onMove: (@Sendable () -> Void)?

  /// - Parameter pageBytes: of the database.
  /// - Parameter companions: how the names of the files end that go with it, beside SQLite's own.
  /// - Parameter onMove: called after each file that is moved.
  public init(
    _ folder: String, _ name: String, pageBytes: Int, companions: [String] = [], onMove: (@Sendable () -> Void)? = nil
  ) {
    (self.folder, self.name, self.pageBytes) = (folder, name, pageBytes)
    (self.companions, self.onMove) = (["-wal"] + companions, onMove)
  }

  /// Of the database.
  public var path: String { path(of: name) }
  /// Of a file in the folder.
  public func path(of name: String) -> String { "\(folder)/\(name)" }

  private static func bytes(_ path: String) -> Int? {
    var facts = stat()
    return stat(path, &facts) == 0 ? Int(facts.st_size) : nil
  }

  // MARK: What a start finds

  /// Of its file; nil if the file is missing.
  public var bytes: Int? { Self.bytes(path) }
  public var bytesWithLog: Int { (bytes ?? 0) + (Self.bytes(path + "-wal") ?? 0) }

  /// Whether the file is there, where a database was. - Throws: damage, if it is empty or missing beside its log: SQLite would
  /// delete that log without a word.
  public func isThere() throws(SQLiteError) -> Bool {
    let bytes = bytes
    if bytes ?? 0 > 0 { return true }
    guard bytes == nil, Self.bytes(path + "-wal") ?? 0 < LogFrames.headerBytes else {
      throw .corrupt("the file is empty, or missing beside its log")
    }
    return false
  }

  /// Reads the log before SQLite does, which ends at the first damaged frame and leaves out the commits behind it without a
  /// word. Each commit is synced before the next begins, so a loss of power tears the last one only.
  /// - Parameter isSameBoot: no power was lost since its end was known to be whole.
  /// - Throws: damage, if SQLite would leave out what was answered. - Returns: nil if there is no log.
  public func soundLog(isSameBoot: Bool) throws(SQLiteError) -> WriteAheadLog? {
    let log = WriteAheadLog(path: path + "-wal", pageBytes: pageBytes)
    if let log, log.commitsBehindDamage > (isSameBoot ? 0 : 1) {
      throw .corrupt("its log is damaged before \(log.commitsBehindDamage) whole commits")
    }
    return log
  }

  /// Cuts off what SQLite would not read of the log, so that it is not taken for anything once commits stand before it.
  public func cut(_ log: WriteAheadLog) throws(SQLiteError) {
    if log.hasDamagedFrame, let end = log.soundEnd { try cutLog(at: end) }
  }

  /// Copies the log into the database, as far as no reader prevents it. Then it cuts off what the log has behind the last
  /// commit that SQLite knows: frames of a commit that failed, or of an earlier round. Behind a shorter commit they would
  /// look like commits behind damage.
  /// - Parameter connection: to this database.
  public func settleLog(_ connection: SQLiteConnection) throws(SQLiteError) {
    var frames = -1
    try connection.prepare("PRAGMA wal_checkpoint").forEachRow(of: CheckpointColumn.self) { frames = $0.int(.log) }
    if frames >= 0 { try cutLog(at: LogFrames.headerBytes + frames * (LogFrames.frameHeaderBytes + pageBytes)) }
  }

  private enum CheckpointColumn: String, SQLiteColumn { case busy, log, checkpointed }

  private func cutLog(at end: Int) throws(SQLiteError) {
    guard Self.bytes(path + "-wal") ?? 0 > end, truncate(path + "-wal", off_t(end)) != 0 else { return }
    throw .inputOutput(String(cString: strerror(errno)), sql: "cut the log")
  }

  /// Whether a sound file can't cause this error of an opening.
  public func isFault(_ error: SQLiteError) -> Bool {
    if error.code < 0 || error.isEnvironment { return false }
    return !error.isReadOnly || access(path, W_OK) == 0 && access(folder, W_OK) == 0
  }

  /// Whether this error of an open file says that it is damaged. A head with a wrong bit makes SQLite only read it.
  public func isDamage(_ error: SQLiteError) -> Bool { error.isCorruption || error.isReadOnly && isFault(error) }

  // MARK: Setting aside

  /// - Returns: a name that no file has.
  public func freeName(_ kind: String, unixMilliseconds: Int64) -> String {
    var time = unixMilliseconds
    func name() -> String { "\(self.name).\(kind)-\(time)" }
    while ["", "-wal"].contains(where: { access(path(of: name()) + $0, F_OK) == 0 }) { time += 1 }
    return name()
  }

  /// Moves to `name` what has not been moved yet. Again is harmless.
  public func move(to name: String) {
    let target = path(of: name)
    guard access(target, F_OK) != 0 else { return }
    // The log first: SQLite would delete it where its database is missing.
    for suffix in companions { move(path + suffix, to: target + suffix) }
    unlink(path + "-shm")
    if bytes ?? 0 == 0 { writeHead(for: target + "-wal") }
    move(path, to: target)
    SideFile.syncFolder(folder)
  }

  /// Moves back what has not been moved yet. Again is harmless.
  public func moveBack(_ name: String) {
    for suffix in companions + [""] { move(path(of: name) + suffix, to: path + suffix) }
    SideFile.syncFolder(folder)
  }

  private func move(_ source: String, to target: String) {
    guard access(source, F_OK) == 0, access(target, F_OK) != 0 else { return }
    Glibc.rename(source, target)
    onMove?()
  }

  /// Gives an emptied file the head of a database again, so that SQLite reads its log instead of deleting it.
  /// (https://www.sqlite.org/fileformat2.html#the_database_header)
  private func writeHead(for log: String) {
    guard let log = SideFile.bytes(log), log.count >= LogFrames.headerBytes else { return }
    let named = log.bigEndian32(8)
    let pageBytes = (512...65536).contains(named) && named & (named - 1) == 0 ? named : pageBytes
    var page = [UInt8](repeating: 0, count: pageBytes)
    page.replaceSubrange(0..<16, with: Array("SQLite format 3\0".utf8))
    (page[16], page[17]) = (UInt8(truncatingIfNeeded: pageBytes >> 8), pageBytes == 65536 ? 1 : 0)
    page.replaceSubrange(18..<24, with: [2, 2, 0, 64, 32, 32])
    (page[47], page[59]) = (4, 1)
    (page[100], page[105], page[106]) = (BTreePage.leafTable, UInt8(truncatingIfNeeded: pageBytes >> 8), 0)
    SideFile.write(page, to: path)
  }

  /// Deletes a database with its files.
  public func remove(_ name: String) {
    for suffix in [""] + companions + ["-shm"] {
      unlink(path(of: name) + suffix)
      onMove?()
    }
    SideFile.syncFolder(folder)
  }

  /// Gives a database that was set aside as one kind the name of another; nothing if it is not of that kind.
  public func rename(_ name: String, from kind: String, to other: String) {
    let prefix = "\(self.name).\(kind)-"
    guard name.hasPrefix(prefix) else { return }
    let new = "\(self.name).\(other)-\(name.dropFirst(prefix.count))"
    for suffix in [""] + companions + ["-shm"] { Glibc.rename(path(of: name) + suffix, path(of: new) + suffix) }
  }

  /// The databases of these kinds that were set aside, and when, in milliseconds since 1970: the oldest first.
  public func aside(_ kinds: String...) -> [(name: String, unixMilliseconds: Int64)] {
    SideFile.names(in: folder).compactMap { file in
      let prefix = kinds.map { "\(name).\($0)-" }.first { file.hasPrefix($0) }
      return prefix.flatMap { Int64(file.dropFirst($0.count)) }.map { (file, $0) }
    }.sorted { $0.unixMilliseconds < $1.unixMilliseconds }
  }
}
