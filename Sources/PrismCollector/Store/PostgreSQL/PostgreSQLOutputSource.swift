import PrismBase

/// Reads for one output, on a connection and a queue of its own. The replica that holds the output's row of `outputs` reads.
///
/// A replica takes the row with a new epoch. Each commit of the leader is for its epoch only, and adds to the row's beat. Others
/// take the row once its beat has rested for `restMax` of their own uptime. No clock and no session decides, because the
/// connection may be one of a pool.
actor PostgreSQLOutputSource: LetterSource {
  /// Of a leader's beat, in uptime of the replica that looks.
  static let restMax: Duration = .seconds(10)

  private let executor = DispatchQueueExecutor(label: "prism.collector.output")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let setup: PostgreSQLSetup
  private let name: String
  private let time: any TimeSource
  private var connection: PostgreSQLConnection?
  /// nil: this replica does not lead.
  private var epoch: Int64?
  /// When its last commit began, in uptime.
  private var beatAt: Duration = .zero
  /// Of the replica that leads: its epoch and beat, and since when they are the same.
  private var seen: (epoch: Int64, beat: Int64, since: Duration)?
  private let blocks = BlockReader()

  init(_ setup: PostgreSQLSetup, name: String, time: any TimeSource) {
    (self.setup, self.name, self.time) = (setup, name, time)
  }

  /// Lets another replica lead at once.
  func close() {
    if let epoch, connection != nil {
      // If it fails, the others wait until the beat has rested.
      try? ask { (connection, by) throws(PostgreSQLError) in
        _ = try connection.query(
          "UPDATE outputs SET is_free = true WHERE output = $1 AND epoch = $2", [name, String(epoch)], by: by)
      }
    }
    (connection, epoch) = (nil, nil)
  }

  // MARK: Leading

  func lead() throws(StoreFailure) -> Bool {
    if let epoch {
      guard time.uptime - beatAt >= Self.restMax / 4 else { return true }
      let isHeld = try change("beat = beat + 1, seen = now()", of: epoch)
      if !isHeld { self.epoch = nil }
      return isHeld
    }
    guard let seen, time.uptime - seen.since < Self.restMax else { return try take() }
    let now = try ask { (connection, by) throws(PostgreSQLError) in
      try connection.query("SELECT epoch, beat, is_free FROM outputs WHERE output = $1", [name], by: by)
    }
    guard now.count == 1, !now.bool(0, 2) else { return try take() }
    if (now.int(0, 0), now.int(0, 1)) != (seen.epoch, seen.beat) {
      self.seen = (now.int(0, 0), now.int(0, 1), time.uptime)
    }
    return false
  }

  /// Takes the row if it is new or free, or if it is still as it was seen.
  private func take() throws(StoreFailure) -> Bool {
    let (name, seen, now) = (name, seen, time.uptime)
    beatAt = now
    let row = try ask { (connection, by) throws(PostgreSQLError) in
      let taken = try connection.query(
        """
        INSERT INTO outputs (output, cursor, seen, epoch) VALUES ($1, 0, now(), 1) ON CONFLICT (output) DO UPDATE
          SET epoch = outputs.epoch + 1, beat = outputs.beat + 1, seen = now(), is_free = false
          WHERE outputs.is_free OR (outputs.epoch, outputs.beat) = ($2, $3) RETURNING epoch
        """, [name, String(seen?.epoch ?? -1), String(seen?.beat ?? -1)], by: by)
      if taken.count == 1 { return (epoch: taken.int(0, 0), beat: Int64?.none) }
      let found = try connection.query("SELECT epoch, beat FROM outputs WHERE output = $1", [name], by: by)
      return (found.count == 1 ? found.int(0, 0) : 0, found.count == 1 ? found.int(0, 1) : 0)
    }
    if let beat = row.beat { self.seen = (row.epoch, beat, now) } else { (epoch, self.seen) = (row.epoch, nil) }
    return epoch != nil
  }

  /// Changes the row in one commit, with what `more` does, if this replica still leads. - Returns: false: another one does.
  private func change(
    _ columns: String, of epoch: Int64,
    _ more: (PostgreSQLConnection, Deadline) throws(PostgreSQLError) -> Void = { (_, _) in }
  ) throws(StoreFailure) -> Bool {
    beatAt = time.uptime
    return try ask { (connection, by) throws(PostgreSQLError) in
      try connection.transaction(by: by) { () throws(PostgreSQLError) in
        let found = try connection.query(
          "UPDATE outputs SET \(columns) WHERE output = $1 AND epoch = $2 RETURNING 1", [name, String(epoch)], by: by)
        guard found.count == 1 else { return false }
        try more(connection, by)
        return true
      }
    }
  }

  // MARK: Reading and noting

  func cursor() throws(StoreFailure) -> Int64 {
    try ask { (connection, by) throws(PostgreSQLError) in
      try connection.query("SELECT coalesce(max(cursor), 0) FROM outputs WHERE output = $1", [name], by: by).int(0, 0)
    }
  }

  func next(after id: Int64, limit: Int) throws(StoreFailure) -> [StoredReport] {
    var filter = ReportFilter(scope: .everything)
    (filter.after, filter.limit, filter.hasPayloads) = (id, limit, true)
    let wanted = filter
    return try ask { (connection, by) throws(PostgreSQLError) in
      try PostgreSQLError.only {
        let driver = PostgreSQLDriver(connection, by: by)
        let horizon = try driver.horizon()
        return try connection.transaction(PostgreSQLDriver.readingMode, by: by) { () throws(PostgreSQLError) in
          let tables = StoreTables(driver, horizon: horizon)
          return try PostgreSQLError.only { try blocks.page(tables.final(wanted), of: tables) }
        }
      }
    }
  }

  /// Only forward, and only while this replica leads.
  func note(cursor id: Int64, refused: [RefusedReport]) throws(StoreFailure) {
    let place = "cursor = greatest(cursor, \(id)), beat = beat + 1, seen = now()"
    let now = time.unixMilliseconds
    let isHeld = try change(place, of: epoch ?? -1) { (connection, by) throws(PostgreSQLError) in
      try PostgreSQLError.only { try letters(connection, by).add(refused, time: now) }
    }
    guard isHeld else {
      epoch = nil
      throw .unavailable("another collector feeds this output now")
    }
  }

  // MARK: Dead letters

  func letters<Result: Sendable>(_ body: @Sendable (DeadLetters) throws -> Result) throws(StoreFailure) -> Result {
    try ask { (connection, by) throws(PostgreSQLError) in
      try PostgreSQLError.only { try body(letters(connection, by)) }
    }
  }

  private func letters(_ connection: PostgreSQLConnection, _ by: Deadline) -> DeadLetters {
    DeadLetters(statements: SQLStatements(driver: PostgreSQLDriver(connection, by: by)), output: name)
  }

  private func ask<Result>(
    _ body: (PostgreSQLConnection, Deadline) throws(PostgreSQLError) -> Result
  ) throws(StoreFailure) -> Result {
    do throws(PostgreSQLSetup.Refusal) {
      let connection = if let connection { connection } else { try setup.connect() }
      self.connection = connection
      do throws(PostgreSQLError) { return try body(connection, Deadline(setup.deadline)) } catch {
        if error.endsConnection { self.connection = nil }
        throw .failed(error)
      }
    } catch { throw .unavailable(error.description) }
  }
}
