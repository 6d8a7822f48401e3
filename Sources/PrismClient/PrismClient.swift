import Glibc
import PrismBase
public import PrismProtocol

/// Reports to the daemon of this machine.
///
///     let client = PrismClient(app: ["APP_NAME": "pos", "APP_VERSION": "4.2.0"])
///     let answer = try await client.report(Report(ReportType("net")!, meta: ["ms": 12]))
///
/// It connects when first used, greets with `app`, and connects again after a restart of the daemon. Then reports with
/// an id are sent again and stored once; others throw `connectionLost` (see `Report.id`). It works on its own queue,
/// blocks no thread of the caller, and raises no signal. Calls are answered one after another.
public actor PrismClient {
  /// The path of `ingest.socket` by default.
  public static let defaultSocket = "/run/prism/ingest.sock"

  private let executor = DispatchQueueExecutor(label: "prism.client")
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let socket: String
  private let app: [String: String]
  private let answerTimeout: Duration
  private var stream: (mode: Mode, socket: SocketStream)?
  /// As the greeting has it; nil: the connection is the session.
  private var session: JSONValue?
  nonisolated let watches: ClientWatches

  private enum Mode: String { case each, cumulative }

  /// - Parameter socket: the daemon's `ingest.socket`; nil: the environment's `PRISM_INGEST`, else the default.
  /// - Parameter app: common information of the app: `APP_NAME`, `APP_VERSION`, … (docs/ingest-protocol.md), each at
  /// most 256 bytes.
  /// - Parameter answerTimeout: how long the daemon may be silent while an answer is due.
  public init(socket: String? = nil, app: [String: String] = [:], answerTimeout: Duration = .seconds(60)) {
    self.socket = Self.socket(socket)
    watches = ClientWatches(socket: self.socket)
    self.app = app
    self.answerTimeout = answerTimeout
  }

  /// - Parameter given: nil: the environment's `PRISM_INGEST`, else the default.
  static func socket(_ given: String?) -> String {
    given ?? getenv("PRISM_INGEST").map { String(cString: $0) } ?? defaultSocket
  }

  /// One report, answered.
  public func report(_ report: Report) throws(ClientError) -> ReportAnswer {
    guard let answer = try self.report(contentsOf: [report]).first else {
      throw .protocolViolation("no answer")
    }
    return answer
  }

  /// Many reports, pipelined; one answer each, in their order.
  public func report(contentsOf reports: [Report]) throws(ClientError) -> [ReportAnswer] {
    var answers: [ReportAnswer] = []
    var reconnects = 0
    while answers.count < reports.count {
      do throws(ClientError) {
        try exchange(reports, answers: &answers)
      } catch .connectionLost(let socket, let mayBeStored) {
        stream = nil
        let isRepeatable = !mayBeStored || reports[answers.count...].allSatisfy { $0.id != nil }
        guard isRepeatable, reconnects < 3 else {
          throw .connectionLost(socket: socket, mayBeStored: mayBeStored)
        }
        reconnects += 1
      } catch {
        stream = nil
        throw error
      }
    }
    return answers
  }

  /// Request lines as they stand (NDJSON of docs/ingest-protocol.md, each with its payload bytes behind it), pipelined
  /// in the mode
  /// `cumulative`: the fastest way in.
  /// - Parameter nextChunk: whole requests, and how many they are; nil at the end.
  /// - Parameter progress: called with the number of reports that were dealt with so far.
  /// - Throws: also `connectionLost`; then what was not in the last `progress` may or may not be stored.
  @discardableResult
  public func send(
    nextChunk: @Sendable () -> (bytes: [UInt8], reports: Int)?, progress: @Sendable (Int) -> Void = { _ in }
  ) throws(ClientError) -> BulkOutcome {
    var outcome = BulkOutcome()
    var (sent, ended) = (0, false)
    stream = nil  // `acked` counts the reports of a connection: begin with a new one
    let connection = try connected(.cumulative)
    defer { stream = nil }
    func next() -> [UInt8]? {
      guard let chunk = nextChunk() else {
        ended = true
        return nil
      }
      sent += chunk.reports
      return chunk.bytes
    }
    guard let first = next() else { return outcome }
    try connection.exchange(first, then: next) { (line) throws(ClientError) in
      try outcome.take(line)
      progress(outcome.answered)
      return ended && outcome.answered >= sent
    }
    return outcome
  }

  /// Begins a session of the app, and ends the one before it (docs/sessions.md). Without sessions of its own each connection of the
  /// client is one.
  /// - Parameter id: no other session of the user has it: connections that name it are one session.
  public func beginSession(_ id: ReportID) throws(ClientError) { try set(session: .string(id.text)) }

  /// Ends the session: the app is not in use until the next one begins.
  public func endSession() throws(ClientError) { try set(session: false) }

  private func set(session: JSONValue) throws(ClientError) {
    (self.session, stream) = (session, nil)
    _ = try connected(.each)
  }

  /// The common information as the daemon merges it into the metas of this connection.
  public func common() throws(ClientError) -> JSONValue {
    guard let common = try ask(["common": true])["common"] else { throw .protocolViolation("no common information") }
    return common
  }

  deinit { watches.stop() }

  /// Whether the namespace takes reports, from memory: never waits. The first call opens a connection on which the daemon
  /// tells each change. Before its first answer, and while it is away, the last known value counts, at first true.
  public nonisolated func isGather(_ namespace: NamespaceName) -> Bool {
    watches.settings(of: namespace).last?.isGather ?? true
  }

  /// The changes of a table of records, of programs and of the server (docs/records.md): the first element says how it is,
  /// each later one what changed. It goes on after a restart of the daemon, and ends with the client. A reader that is late
  /// gets the newest change, without ids. While the daemon does not know the table, there is no element.
  ///
  ///     for await change in client.changes(of: settings, in: shop) { … change.ids … }
  public nonisolated func changes(
    of table: RecordTableName, in namespace: NamespaceName = .prism
  ) -> AsyncStream<RecordChange> { watches.changes(of: table, in: namespace).follow() }

  /// A question of the protocol; it may be asked twice, since it changes nothing.
  func ask(_ question: JSONValue) throws(ClientError) -> JSONValue {
    try retrying { () throws(ClientError) in try askOnce(question) }
  }

  /// Up to four times, each on a new connection, while the daemon goes away.
  private func retrying<Result>(_ body: () throws(ClientError) -> Result) throws(ClientError) -> Result {
    var tries = 1
    while true {
      do throws(ClientError) { return try body() } catch {
        stream = nil
        guard case .connectionLost = error, tries < 4 else { throw error }
        tries += 1
      }
    }
  }

  private func askOnce(_ question: JSONValue) throws(ClientError) -> JSONValue {
    let connection = try connected(.each)
    var answer: JSONValue?
    try connection.exchange(question.bytes + [UInt8(ascii: "\n")]) { (line) throws(ClientError) in
      answer = try? JSONValue(parsing: line)
      return true
    }
    guard let answer else { throw .protocolViolation("the answer to a question is no JSON") }
    if let refusal = Refusal(answer) { throw .refused(socket: socket, refusal) }
    return answer
  }

  private func exchange(_ reports: [Report], answers: inout [ReportAnswer]) throws(ClientError) {
    let connection = try connected(.each)
    var (rest, answered) = (reports[answers.count...], answers)
    defer { answers = answered }
    guard let first = rest.popFirst() else { return }
    func next() -> [UInt8]? { rest.popFirst()?.requestBytes }
    try connection.exchange(first.requestBytes, then: next) { (line) throws(ClientError) in
      answered.append(try ReportAnswer(parsing: line))
      return answered.count == reports.count
    }
  }

  /// The connection in `mode`, greeted; a new one if there is no connection. A daemon that is being restarted may close
  /// a connection before it greets. No report was sent by then, so another try is safe.
  private func connected(_ mode: Mode) throws(ClientError) -> SocketStream {
    if let stream, stream.mode == mode { return stream.socket }
    do throws(ClientError) { return try retrying { () throws(ClientError) in try connect(mode) } } catch {
      if case .connectionLost(let socket, _) = error { throw .connectionLost(socket: socket, mayBeStored: false) }
      throw error
    }
  }

  private func connect(_ mode: Mode) throws(ClientError) -> SocketStream {
    let connection = try SocketStream(path: socket, timeout: answerTimeout)
    let hello: JSONValue = [
      "hello": .object(
        [
          .init("app", .object(app.sorted { $0.key < $1.key }.map { .init($0.key, .string($0.value)) })),
          .init("answer", .string(mode.rawValue)),
        ] + (session.map { [.init("session", $0)] } ?? []))
    ]
    try connection.exchange(hello.bytes + [UInt8(ascii: "\n")]) { (line) throws(ClientError) in
      let answer = try? JSONValue(parsing: line)
      if answer?["hello"] != nil { return true }
      if let refusal = answer.flatMap({ Refusal($0) }) { throw .refused(socket: socket, refusal) }
      throw .protocolViolation("the greeting was not answered")
    }
    stream = (mode, connection)
    return connection
  }
}
