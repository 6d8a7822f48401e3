import PrismBase
import PrismConfig
import Synchronization

/// A file that is read again when 2 s have passed, so that a change counts within 5. One that can't be read, is too long, or has
/// a fault changes nothing.
actor WatchedFile<Value: Sendable> {
  /// One that was cut here would let in the beginning of a token.
  static var bytesMax: Int { 65_536 }

  private let executor = DispatchQueueExecutor(label: "prism.collector.files")
  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let path: String
  private let time: any TimeSource
  private let log: Logger
  private let parse: @Sendable ([UInt8]) throws(FileFault) -> Value
  private struct State {
    var value: Value?
    var readAt: Duration?
  }
  private nonisolated let state = Mutex(State())

  init(
    path: String, time: any TimeSource, log: Logger, parse: @escaping @Sendable ([UInt8]) throws(FileFault) -> Value
  ) {
    (self.path, self.time, self.log, self.parse) = (path, time, log, parse)
  }

  /// nil: it could not be used yet.
  func value() -> Value? {
    refresh()
    return state.withLock { $0.value }
  }

  /// Never waits. - Returns: what was read last; whether it need not be read again. If it has to be, that is begun.
  nonisolated func valueNow() -> (value: Value?, isFresh: Bool) {
    let known: (value: Value?, isFresh: Bool) = state.withLock { ($0.value, isFresh($0)) }
    if !known.isFresh { Task { await refresh() } }
    return known
  }

  private nonisolated func isFresh(_ state: State) -> Bool {
    state.readAt.map { time.uptime - $0 < .seconds(2) } ?? false
  }

  private func refresh() {
    if state.withLock({ isFresh($0) }) { return }
    defer { state.withLock { $0.readAt = time.uptime } }
    do throws(FileFault) {
      let value = try parse(FileReading.read(path, bytesMax: Self.bytesMax).bytes)
      state.withLock { $0.value = value }
    } catch {
      return log.fault(
        "collector.file \(path)", "a file can't be used, so what was read of it last stays",
        ["path": path, "cause": error.reason])
    }
    log.faultEnded("collector.file \(path)", "the file can be used again")
  }
}
