import PrismBase
import Synchronization

/// Keeps `prism.run` in the state folder: the file is there while the store is open, and says of a run that did not end in
/// order how far it came. Written at once and synced; a disk that fails it fails the database, too.
public final class StartMarker: Sendable {
  private enum Phase { case idle, starting, ready, over }

  private struct State {
    var history = StartHistory()
    var phase = Phase.idle
  }

  private let path: String
  private let bootID: String
  private let state = Mutex(State())

  /// - Parameter bootID: nil: the kernel's.
  public init(folder: String, bootID: String? = nil) {
    path = folder + "/prism.run"
    self.bootID =
      bootID ?? SideFile.text("/proc/sys/kernel/random/boot_id")?.filter { $0 != "\n" } ?? ""
  }

  func begin(unixMilliseconds now: Int64) -> StartHistory.Start {
    state.withLock { state in
      state.history = SideFile.text(path).map { StartHistory($0) } ?? StartHistory()
      state.phase = .starting
      let start = state.history.begin(bootID: bootID, unixMilliseconds: now)
      write(state.history)
      return start
    }
  }

  func logIsWhole() {
    change { state in
      let before = state.history
      state.history.logIsWhole()
      return state.history != before
    }
  }

  /// Deaths from now on are not the database's doing.
  func ready() {
    change { state in
      state.history.becomeReady()
      state.phase = .ready
      return true
    }
  }

  /// The database is open again after it was closed, or in a folder that was made again.
  func reopened() {
    change { state in
      if state.phase == .over { state.phase = .ready }
      return true
    }
  }

  /// The start ends in order before it is ready: no death. Nothing if it is ready already. From any thread; nothing is
  /// written after it.
  public func stop() {
    change { state in
      guard state.phase == .starting else { return false }
      state.history.stop()
      state.phase = .over
      return true
    }
  }

  /// The database is closed in order: the file goes. Nothing if the start was stopped.
  func end() {
    state.withLock { state in
      if state.phase != .over { SideFile.remove(path) }
      state.phase = .over
    }
  }

  /// - Parameter body: answers whether the file is to be written.
  private func change(_ body: (inout State) -> Bool) {
    state.withLock { if body(&$0) { write($0.history) } }
  }

  private func write(_ history: StartHistory) { SideFile.write(history.text, to: path) }
}
