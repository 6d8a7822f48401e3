import CPostgreSQL
import Glibc
import PrismBase

/// A connection to PostgreSQL, for the one queue that owns it. Each call has a deadline.
///
/// Nothing is ever cancelled: a commit that waits for a standby would end with success. A call that is late closes the
/// socket and leaves the outcome open.
public final class PostgreSQLConnection {
  /// Warnings since they were last asked for.
  private final class Notices {
    var warning: String?
  }

  private let handle: OpaquePointer
  private let notices = Notices()
  /// Statements that begin each transaction: a pool of connections in between may give each to another session.
  public var transactionSettings: [String] = []

  /// Of the session that libpq began. It differs from `pg_backend_pid()` behind a pool.
  public var backendID: Int64 { Int64(PQbackendPID(handle)) }

  /// - Throws: `lost`, `late`, or what the server refuses (a wrong password, a database that is not there).
  public init(_ target: PostgreSQLTarget, by deadline: Deadline) throws(PostgreSQLError) {
    let parameters = target.parameters
    let keywords = parameters.map { strdup($0.keyword) } + [nil]
    let values = parameters.map { strdup($0.value) } + [nil]
    defer { for text in keywords + values { free(text) } }
    let started = PQconnectStartParams(keywords.map { UnsafePointer($0) }, values.map { UnsafePointer($0) }, 1)
    guard let started else { throw PostgreSQLError(kind: .lost, message: "out of memory") }
    handle = started
    // Before the deinit can run: it needs every member.
    try finishConnecting(deadline)
    let arg = Unmanaged.passUnretained(notices).toOpaque()
    PQsetNoticeReceiver(handle, { PostgreSQLConnection.receive($0, $1) }, arg)
    PQsetnonblocking(handle, 1)
  }

  deinit { PQfinish(handle) }

  private func finishConnecting(_ deadline: Deadline) throws(PostgreSQLError) {
    // Notices of the connecting itself: libpq would write them to standard error.
    PQsetNoticeReceiver(handle, { _, _ in }, nil)
    var events = Int16(POLLOUT)
    while PQstatus(handle) != CONNECTION_BAD {
      try wait(for: events, deadline)
      switch PQconnectPoll(handle) {
      case PGRES_POLLING_OK: return
      case PGRES_POLLING_READING: events = Int16(POLLIN)
      case PGRES_POLLING_WRITING: events = Int16(POLLOUT)
      default: throw lost()
      }
    }
    throw lost()
  }

  private static func receive(_ context: UnsafeMutableRawPointer?, _ result: OpaquePointer?) {
    guard let context, let result, let severity = prism_pq_severity(result), String(cString: severity) == "WARNING"
    else { return }
    let message = prism_pq_message(result).map { String(cString: $0) }
    Unmanaged<Notices>.fromOpaque(context).takeUnretainedValue().warning = message ?? "a warning"
  }

  // MARK: Statements

  /// Executes statements without parameters. - Returns: the last one's result.
  @discardableResult
  public func execute(_ sql: String, by deadline: Deadline) throws(PostgreSQLError) -> PostgreSQLResult? {
    guard PQsendQuery(handle, sql) == 1 else { throw lost() }
    return try finish(deadline)
  }

  /// Executes one statement. - Parameter parameters: in PostgreSQL's text form; nil is NULL.
  /// - Returns: rows in binary form.
  public func query(_ sql: String, _ parameters: [String?] = [], by deadline: Deadline) throws(PostgreSQLError)
    -> PostgreSQLResult
  {
    guard send(sql, parameters), let result = try finish(deadline) else { throw lost() }
    return result
  }

  private func send(_ sql: String, _ parameters: [String?]) -> Bool {
    let values = parameters.map { $0.flatMap { strdup($0) } }
    defer { for value in values { free(value) } }
    return PQsendQueryParams(
      handle, sql, Int32(values.count), nil, values.map { UnsafePointer($0) }, nil, nil, 1) == 1
  }

  /// Begins a transaction and executes its first statement in one round trip. - Returns: the statement's rows, in binary form.
  public func begin(
    with sql: String, _ parameters: [String?], by deadline: Deadline
  ) throws(PostgreSQLError) -> PostgreSQLResult {
    guard PQenterPipelineMode(handle) == 1 else { throw lost() }
    let statements = ["BEGIN"] + transactionSettings
    guard statements.allSatisfy({ send($0, []) }), send(sql, parameters), PQpipelineSync(handle) == 1 else {
      throw lost()
    }
    try flush(deadline)
    var (last, failure) = (PostgreSQLResult?.none, PostgreSQLError?.none)
    while true {
      // nil ends a statement's results; the sync point is the last.
      let result = try nextResult(deadline)
      if PQstatus(handle) == CONNECTION_BAD { throw failure ?? result?.error ?? lost() }
      guard let result else { continue }
      if result.status == PGRES_PIPELINE_SYNC { break }
      switch result.status {
      case PGRES_COMMAND_OK, PGRES_TUPLES_OK: last = result
      case PGRES_PIPELINE_ABORTED: break
      default: failure = failure ?? result.error
      }
    }
    guard PQexitPipelineMode(handle) == 1 else { throw lost() }
    if let failure { throw failure }
    guard let last else { throw lost() }
    return last
  }

  /// Commits. - Throws: `unconfirmed` where the server warns of it; `lost` and `late` leave the outcome open.
  public func commit(by deadline: Deadline) throws(PostgreSQLError) {
    notices.warning = nil
    let result = try execute("COMMIT", by: deadline)
    if let warning = notices.warning { throw PostgreSQLError(kind: .unconfirmed, message: warning) }
    guard result?.command == "COMMIT" else {
      throw PostgreSQLError(kind: .refused(state: "25P02"), message: "the transaction had failed before")
    }
  }

  /// Begins a transaction. - Parameter mode: what follows `BEGIN`.
  public func begin(_ mode: String = "", by deadline: Deadline) throws(PostgreSQLError) {
    try execute("BEGIN \(mode);" + transactionSettings.joined(separator: ";"), by: deadline)
  }

  /// Also one that failed.
  public var isInTransaction: Bool { PQtransactionStatus(handle) != PQTRANS_IDLE }

  /// Runs `body` in a transaction. A failure rolls back; the connection can be used again unless the error ends it.
  public func transaction<Result>(
    _ mode: String = "", by deadline: Deadline, _ body: () throws(PostgreSQLError) -> Result
  ) throws(PostgreSQLError) -> Result {
    try committing(by: deadline) { () throws(PostgreSQLError) in
      try begin(mode, by: deadline)
      return try body()
    }
  }

  /// The same of a transaction that `body` begins.
  public func committing<Result>(
    by deadline: Deadline, _ body: () throws(PostgreSQLError) -> Result
  ) throws(PostgreSQLError) -> Result {
    do throws(PostgreSQLError) {
      let result = try body()
      try commit(by: deadline)
      return result
    } catch {
      guard !error.endsConnection, isInTransaction else { throw error }
      do throws(PostgreSQLError) { try execute("ROLLBACK", by: deadline) } catch let end { throw end }
      throw error
    }
  }

  // MARK: COPY

  /// Copies rows into a table. - Parameter sql: `COPY … FROM STDIN`.
  public func copy(_ sql: String, _ rows: inout CopyRows, by deadline: Deadline) throws(PostgreSQLError) {
    guard PQsendQuery(handle, sql) == 1 else { throw lost() }
    try flush(deadline)
    guard let result = try nextResult(deadline) else { throw lost() }
    guard result.status == PGRES_COPY_IN else {
      while try nextResult(deadline) != nil {}
      throw result.error
    }
    try send(deadline) { rows.withBytes { PQputCopyData(handle, $0, Int32($1)) } }
    rows.removeAll()
    try send(deadline) { PQputCopyEnd(handle, nil) }
    _ = try finish(deadline)
  }

  private func send(_ deadline: Deadline, _ body: () -> Int32) throws(PostgreSQLError) {
    var sent: Int32 = 0
    while sent == 0 {
      sent = body()
      if sent < 0 { throw lost() }
      if sent == 0 { try flush(deadline) }
    }
  }

  // MARK: The socket

  private func finish(_ deadline: Deadline) throws(PostgreSQLError) -> PostgreSQLResult? {
    try flush(deadline)
    var (last, failure) = (PostgreSQLResult?.none, PostgreSQLError?.none)
    while let result = try nextResult(deadline) {
      switch result.status {
      case PGRES_COMMAND_OK, PGRES_TUPLES_OK, PGRES_EMPTY_QUERY: last = result
      default: failure = failure ?? result.error
      }
      if PQstatus(handle) == CONNECTION_BAD { throw failure ?? lost() }
    }
    if let failure { throw failure }
    return last
  }

  private func nextResult(_ deadline: Deadline) throws(PostgreSQLError) -> PostgreSQLResult? {
    while PQisBusy(handle) == 1 {
      try wait(for: Int16(POLLIN), deadline)
      // A connection that ends gives its last error as a result.
      guard PQconsumeInput(handle) == 1 || PQisBusy(handle) == 0 else { throw lost() }
    }
    return PQgetResult(handle).map { PostgreSQLResult($0) }
  }

  private func flush(_ deadline: Deadline) throws(PostgreSQLError) {
    while true {
      switch PQflush(handle) {
      case 0: return
      case 1: break
      default: throw lost()
      }
      // The server may wait until its own messages are read.
      if try wait(for: Int16(POLLIN | POLLOUT), deadline) & Int16(POLLIN) != 0, PQconsumeInput(handle) != 1 {
        throw lost()
      }
    }
  }

  @discardableResult
  private func wait(for events: Int16, _ deadline: Deadline) throws(PostgreSQLError) -> Int16 {
    while true {
      var descriptor = pollfd(fd: PQsocket(handle), events: events, revents: 0)
      let left = deadline.millisecondsLeft
      guard descriptor.fd >= 0 else { throw lost() }
      guard left > 0 else { throw PostgreSQLError(kind: .late, message: "") }
      if poll(&descriptor, 1, left) > 0 { return descriptor.revents }
    }
  }

  /// libpq's last words on the connection, in one line.
  private func lost() -> PostgreSQLError {
    let text = String(cString: PQerrorMessage(handle))
    let line = text.split { $0.isNewline }.joined(separator: "; ")
    return PostgreSQLError(kind: .lost, message: line.isEmpty ? "the connection ended" : line)
  }
}

/// When a call to the database must have ended.
public struct Deadline: Sendable {
  private let at: Duration

  /// - Parameter interval: from now.
  public init(_ interval: Duration) { at = SystemTime().uptime + interval }

  /// 0 when it passed, for `poll`.
  var millisecondsLeft: Int32 {
    let left = (at - SystemTime().uptime).components
    guard left.seconds >= 0, left.attoseconds >= 0 else { return 0 }
    return Int32(clamping: left.seconds * 1000 + left.attoseconds / 1_000_000_000_000_000 + 1)
  }
}
