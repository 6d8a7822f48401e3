import PrismSQLite

/// The time in which the collector ran, over all its runs. Ages count in it, so a wrong wall clock makes nothing older.
struct ServiceTime {
  static let fact = "served_seconds"

  /// At the opening of the database; the time since then comes on top. nil before.
  private var start: (seconds: Int64, at: Duration)?
  private var notedSeconds: Int64 = 0

  init() {}

  /// - Parameter now: of the `uptime` clock.
  init(of database: PacketDatabase, now: Duration) throws(SQLiteError) {
    let seconds = try database.fact(Self.fact) ?? 0
    (start, notedSeconds) = ((seconds, now), seconds)
  }

  func seconds(now: Duration) -> Int64 {
    guard let start else { return 0 }
    return start.seconds + (now - start.at).components.seconds
  }

  /// Notes the time, once a minute.
  mutating func note(_ seconds: Int64, in database: PacketDatabase) throws(SQLiteError) {
    guard seconds - notedSeconds >= 60 else { return }
    try database.set(Self.fact, seconds)
    notedSeconds = seconds
  }
}
