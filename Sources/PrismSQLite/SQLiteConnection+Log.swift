import CSQLite
import Glibc

extension SQLiteConnection {
  private static let logHeaderBytes = 32
  private static let frameHeaderBytes = 24

  /// Copies the log into the database, as far as no reader prevents it. Then it cuts off what the log's file has behind the
  /// last commit: frames of a commit that failed, or of an earlier round. The next commit may be shorter, and then the frames
  /// behind it would look like commits behind damage.
  /// - Parameter pageBytes: of the database.
  public func settleLog(path: String, pageBytes: Int) throws(SQLiteError) {
    var frames: Int32 = -1
    guard sqlite3_wal_checkpoint_v2(handle, nil, SQLITE_CHECKPOINT_PASSIVE, &frames, nil) == SQLITE_OK else {
      throw SQLiteError(handle, sql: "checkpoint")
    }
    var facts = stat()
    guard frames >= 0, stat(path + "-wal", &facts) == 0 else { return }
    let end = Self.logHeaderBytes + Int(frames) * (Self.frameHeaderBytes + pageBytes)
    guard Int(facts.st_size) > end else { return }
    guard truncate(path + "-wal", off_t(end)) == 0 else {
      throw SQLiteError.inputOutput(String(cString: strerror(errno)), sql: "cut the log")
    }
  }
}
