import PrismBase
import PrismOutputs
import PrismSQL
import PrismSQLite

/// Reads for one output, on a connection and a queue of its own. The replica that holds the output's row of `outputs` reads.
///
/// A replica takes the row with a new epoch. Each commit of the leader is for its epoch only, and adds to the row's beat. Others
/// take the row once its beat has rested for `restMax` of their own uptime. No clock and no session decides, because the
/// connection may be one of a pool.
actor PostgreSQLOutputSource: LetterSource {
  /// Of a leader's beat, in uptime of the replica that looks.
  static let restMax: Duration = .seconds(10)

  private enum Column: String, SQLiteColumn { case epoch, beat, isFree }

  private let executor = DispatchQueueExecutor(label: "prism.collector.output")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  nonisolated let name: String
  private let driver: PostgreSQLDriver
  private let session: SQLSession
  private let time: any TimeSource
  /// nil: this replica does not lead.
  private var epoch: Int64?
  /// When its last commit began, in uptime.
  private var beatAt: Duration = .zero
  /// Of the replica that leads: its epoch and beat, and since when they are the same.
  private var seen: (epoch: Int64, beat: Int64, since: Duration)?
  private let blocks = BlockReader()

  init(_ setup: PostgreSQLSetup, name: String, time: any TimeSource) {
    let driver = PostgreSQLDriver(setup)
    (self.name, self.time, self.driver, session) = (name, time, driver, SQLSession { driver })
  }

  /// Lets another replica lead at once.
  func close() {
    if let epoch, driver.isConnected {
      // If it fails, the others wait until the beat has rested.
      _ = try? ask { try $0.run("UPDATE outputs SET is_free = true WHERE output = $1 AND epoch = $2", [name, epoch]) }
    }
    driver.close()
    epoch = nil
  }

  // MARK: Leading

  func lead() throws(StoreFailure) -> Bool {
    if let epoch {
      guard time.uptime - beatAt >= Self.restMax / 4 else { return true }
      let isHeld = try change("beat = beat + 1, seen = now()", of: epoch)
      if !isHeld { self.epoch = nil }
      return isHeld
    }
    guard let seen, time.uptime - seen.since < Self.restMax,
      let now = try ask({ try $0.first(of: Column.self, "FROM outputs WHERE output = $1", [name]) }),
      now.int(.isFree) == 0
    else { return try take() }
    let (epoch, beat) = (now.int64(.epoch), now.int64(.beat))
    if (epoch, beat) != (seen.epoch, seen.beat) { self.seen = (epoch, beat, time.uptime) }
    return false
  }

  /// Takes the row if it is new or free, or if it is still as it was seen.
  private func take() throws(StoreFailure) -> Bool {
    let (seen, now) = (seen, time.uptime)
    beatAt = now
    let (taken, row) = try ask { statements in
      let taken = try statements.integer(
        """
        INSERT INTO outputs (output, cursor, seen, epoch) VALUES ($1, 0, now(), 1) ON CONFLICT (output) DO UPDATE
          SET epoch = outputs.epoch + 1, beat = outputs.beat + 1, seen = now(), is_free = false
          WHERE outputs.is_free OR (outputs.epoch, outputs.beat) = ($2, $3) RETURNING epoch
        """, [name, seen?.epoch ?? -1, seen?.beat ?? -1])
      return (taken, try statements.first(of: Column.self, "FROM outputs WHERE output = $1", [name]))
    }
    epoch = taken
    self.seen = taken == nil ? (row?.int64(.epoch) ?? 0, row?.int64(.beat) ?? 0, now) : nil
    return taken != nil
  }

  /// Changes the row in one commit, with what `more` does, if this replica still leads. - Returns: false: another one does.
  private func change(
    _ columns: String, of epoch: Int64, _ more: (SQLStatements) throws -> Void = { _ in }
  ) throws(StoreFailure) -> Bool {
    beatAt = time.uptime
    return try ask { statements in
      let found = try statements.run(
        "UPDATE outputs SET \(columns) WHERE output = $1 AND epoch = $2 RETURNING 1", [name, epoch])
      guard found == 1 else { return false }
      try more(statements)
      return true
    }
  }

  // MARK: Reading and noting

  func cursor() throws(StoreFailure) -> Int64 {
    try ask { try $0.integer("SELECT cursor FROM outputs WHERE output = $1", [name]) ?? 0 }
  }

  func next(after id: Int64, limit: Int) throws(StoreFailure) -> [StoredReport] {
    try ask(isWriting: false) { statements in
      let tables = StoreTables(statements)
      return try blocks.page(tables.final(.forOutput(after: id, limit)), of: tables)
    }
  }

  /// Only forward, and only while this replica leads.
  func note(cursor id: Int64, refused: [RefusedReport]) throws(StoreFailure) {
    let place = "cursor = greatest(cursor, \(id)), beat = beat + 1, seen = now()"
    let now = time.unixMilliseconds
    let isHeld = try change(place, of: epoch ?? -1) {
      try DeadLetters(statements: $0, output: name).add(refused, time: now)
    }
    guard isHeld else {
      epoch = nil
      throw .unavailable("another collector feeds this output now")
    }
  }

  func asking<Result: Sendable>(_ body: @Sendable (SQLStatements) throws -> Result) throws(StoreFailure) -> Result {
    try ask(body)
  }

  private func ask<Result>(
    isWriting: Bool = true, _ body: (SQLStatements) throws -> Result
  ) throws(StoreFailure) -> Result {
    do { return try session.perform(isWriting: isWriting, isFinal: !isWriting, body) } catch {
      throw .unavailable("\(error)")
    }
  }
}
