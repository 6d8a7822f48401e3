import Dispatch
import Glibc
public import PrismProtocol
import Synchronization

/// The state that a watch follows: the switches of a namespace, or the changes of a table.
protocol WatchedState: Sendable {
  /// nil for a value of another form.
  init?(_ value: JSONValue)
  /// Whether both say the same to a program.
  func says(the other: Self) -> Bool
  /// The state for a reader that did not take the one before it.
  var withoutDetails: Self { get }
}

/// Follows one watch over a connection of its own, which is made again when it is lost. Nothing is connected before the first
/// question.
final class WatchFeed<Watched: WatchedState>: Sendable {
  private struct State {
    var last: Watched?
    var followers: [Int: AsyncStream<Watched>.Continuation] = [:]
    var followerCount = 0
    var isStarted = false, isStopped = false
  }

  private static var pauses: (first: Duration, most: Duration) { (.milliseconds(50), .seconds(10)) }

  private let socket: String
  private let question: [UInt8]
  private let state = Mutex(State())
  /// The reader is woken when the writer is closed: the feed must stop.
  private let stopPipe: (reader: Int32, writer: Int32)

  /// - Parameter watch: the object of the request.
  init(socket: String, watch: JSONValue) {
    self.socket = socket
    question = (["watch": watch] as JSONValue).bytes + [UInt8(ascii: "\n")]
    var ends: [Int32] = [-1, -1]
    if pipe(&ends) == 0 { for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) } }
    stopPipe = (ends[0], ends[1])
  }

  deinit { if stopPipe.reader >= 0 { close(stopPipe.reader) } }

  /// The last known state; nil before the daemon's first answer.
  var last: Watched? {
    start()
    return state.withLock { $0.last }
  }

  /// The last known state, and each later one. A follower that is late gets the newest one.
  func follow() -> AsyncStream<Watched> {
    let (stream, continuation) = AsyncStream.makeStream(of: Watched.self, bufferingPolicy: .bufferingNewest(1))
    let number: Int? = state.withLock { state in
      guard !state.isStopped else { return nil }
      if let last = state.last { continuation.yield(last.withoutDetails) }
      state.followerCount += 1
      state.followers[state.followerCount] = continuation
      return state.followerCount
    }
    guard let number else {
      continuation.finish()
      return stream
    }
    continuation.onTermination = { [weak self] _ in self?.state.withLock { $0.followers[number] = nil } }
    start()
    return stream
  }

  /// Ends the connection and all sequences. Call it once.
  func stop() {
    let followers = state.withLock { state in
      defer { (state.isStopped, state.followers) = (true, [:]) }
      return state.followers
    }
    for follower in followers.values { follower.finish() }
    if stopPipe.writer >= 0 { close(stopPipe.writer) }
  }

  // MARK: The connection

  private func start() {
    let mustStart = state.withLock { state in
      defer { state.isStarted = true }
      return !state.isStarted && !state.isStopped && stopPipe.reader >= 0
    }
    // It blocks its thread as long as it is connected.
    if mustStart { DispatchQueue(label: "prism.watch").async { self.run() } }
  }

  private func run() {
    var pause = Self.pauses.first
    while !state.withLock({ $0.isStopped }) {
      if receive() { pause = Self.pauses.first }
      var entry = pollfd(fd: stopPipe.reader, events: Int16(POLLIN), revents: 0)
      _ = poll(&entry, 1, Int32(pause / .milliseconds(1)))
      pause = min(pause * 2, Self.pauses.most)
    }
  }

  /// One connection, until it ends. - Returns: whether the daemon sent the state.
  private func receive() -> Bool {
    var hasAnswer = false
    do throws(ClientError) {
      let stream = try SocketStream(path: socket, timeout: nil, stop: stopPipe.reader)
      try stream.exchange(question) { (line) throws(ClientError) in
        guard let value = try? JSONValue(parsing: line),
          let told = (value["watch"] ?? value["changed"]).flatMap({ Watched($0) })
        else { return true }  // refused, or ended: it may be configured later
        hasAnswer = true
        take(told)
        return false
      }
    } catch {}  // the daemon is away, or the feed stops
    return hasAnswer
  }

  private func take(_ told: Watched) {
    let followers = state.withLock { state in
      defer { state.last = told }
      // After a restart the daemon says again what is known.
      return state.last?.says(the: told) == true ? [:] : state.followers
    }
    for follower in followers.values {
      if case .dropped = follower.yield(told) { follower.yield(told.withoutDetails) }
    }
  }
}

typealias SettingsFeed = WatchFeed<NamespaceSwitches>

extension NamespaceSwitches: WatchedState {
  var withoutDetails: NamespaceSwitches { self }
}

/// The watches of one client: one connection for each namespace's switches and for each table that it follows.
final class ClientWatches: Sendable {
  private struct Feeds {
    var settings: [NamespaceName: SettingsFeed] = [:]
    /// By the names of the namespace and the table.
    var tables: [[String]: WatchFeed<RecordChange>] = [:]
  }

  private let socket: String
  private let feeds = Mutex(Feeds())

  init(socket: String) { self.socket = socket }

  func settings(of namespace: NamespaceName) -> SettingsFeed {
    feed(\.settings[namespace], ["namespace": .string(namespace.text), "configuration": true])
  }

  func changes(of table: RecordTableName, in namespace: NamespaceName) -> WatchFeed<RecordChange> {
    feed(
      \.tables[[namespace.text, table.text]], ["namespace": .string(namespace.text), "table": .string(table.text)])
  }

  private func feed<Watched>(
    _ place: WritableKeyPath<Feeds, WatchFeed<Watched>?>, _ watch: JSONValue
  ) -> WatchFeed<Watched> {
    feeds.withLock { feeds in
      let feed = feeds[keyPath: place] ?? WatchFeed(socket: socket, watch: watch)
      feeds[keyPath: place] = feed
      return feed
    }
  }

  /// Ends all connections and sequences. Call it once, at the end of the client.
  func stop() {
    let feeds = feeds.withLock { $0 }
    for feed in feeds.settings.values { feed.stop() }
    for feed in feeds.tables.values { feed.stop() }
  }
}

/// A state of a table of records, as a watch tells it.
public struct RecordChange: Sendable, Equatable {
  /// The number of the table's changes: of two states the one with another number is a newer one.
  public var generation: Int
  /// The records that changed since the state before it; nil: read the whole table, as at the beginning.
  public var ids: [RecordID]?

  /// `{"generation":18,"ids":["a"]}`, as the daemon tells it.
  public var json: JSONValue {
    let ids = ids.map { [JSONValue.Member("ids", .array($0.map { .string($0.text) }))] } ?? []
    return .object([.init("generation", .int(generation))] + ids)
  }

  init(generation: Int, ids: [RecordID]?) { (self.generation, self.ids) = (generation, ids) }
}

extension RecordChange: WatchedState {
  init?(_ value: JSONValue) {
    guard let generation = value["generation"]?.int else { return nil }
    let ids = value["ids"]?.array.map { $0.compactMap { $0.string.flatMap { RecordID($0) } } }
    self.init(generation: generation, ids: ids)
  }

  func says(the other: RecordChange) -> Bool { generation == other.generation }

  var withoutDetails: RecordChange { RecordChange(generation: generation, ids: nil) }
}
