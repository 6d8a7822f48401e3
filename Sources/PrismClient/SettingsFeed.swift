import Dispatch
import Glibc
import PrismBase
import PrismProtocol
import Synchronization

/// Follows the switches of one namespace over a connection of its own, which is made again when it is lost. Nothing is connected
/// before the first question.
final class SettingsFeed: Sendable {
  private struct State {
    var last: NamespaceSwitches?
    var followers: [Int: AsyncStream<NamespaceSwitches>.Continuation] = [:]
    var followerCount = 0
    var isStarted = false, isStopped = false
  }

  private static let pauses = (first: Duration.milliseconds(50), most: Duration.seconds(10))

  private let socket: String
  private let question: [UInt8]
  private let state = Mutex(State())
  /// The reader is woken when the writer is closed: the feed must stop.
  private let stopPipe: (reader: Int32, writer: Int32)

  init(socket: String, namespace: NamespaceName) {
    self.socket = socket
    let watch: JSONValue = ["watch": ["namespace": .string(namespace.text), "configuration": true]]
    question = watch.bytes + [UInt8(ascii: "\n")]
    var ends: [Int32] = [-1, -1]
    if pipe(&ends) == 0 { for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) } }
    stopPipe = (ends[0], ends[1])
  }

  deinit { if stopPipe.reader >= 0 { close(stopPipe.reader) } }

  /// The last known switches; nil before the daemon's first answer.
  var last: NamespaceSwitches? {
    start()
    return state.withLock { $0.last }
  }

  /// The last known switches, and each later state. A follower that is late gets the newest one.
  func follow() -> AsyncStream<NamespaceSwitches> {
    let (stream, continuation) = AsyncStream.makeStream(
      of: NamespaceSwitches.self, bufferingPolicy: .bufferingNewest(1))
    let number: Int? = state.withLock { state in
      guard !state.isStopped else { return nil }
      if let last = state.last { continuation.yield(last) }
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
    if mustStart { DispatchQueue(label: "prism.settings").async { self.run() } }
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

  /// One connection, until it ends. - Returns: whether the daemon said anything of the namespace.
  private func receive() -> Bool {
    var (output, hasAnswer): ([UInt8]?, Bool) = (question, false)
    do throws(ClientError) {
      try SocketStream(path: socket, timeout: nil, stop: stopPipe.reader).exchange {
        () throws(ClientError) in
        defer { output = nil }
        return output
      } onLine: { (line) throws(ClientError) in
        guard let value = try? JSONValue(parsing: line),
          let switches = (value["watch"] ?? value["changed"]).flatMap({ NamespaceSwitches($0) })
        else { return true }  // refused: the namespace may be configured later
        hasAnswer = true
        take(switches)
        return false
      }
    } catch {}  // the daemon is away, or the feed stops
    return hasAnswer
  }

  private func take(_ switches: NamespaceSwitches) {
    let followers = state.withLock { state in
      defer { state.last = switches }
      // After a restart the daemon says again what is known.
      return state.last?.says(the: switches) == true ? [:] : state.followers
    }
    for follower in followers.values { follower.yield(switches) }
  }
}
