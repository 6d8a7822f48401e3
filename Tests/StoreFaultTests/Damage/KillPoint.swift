import CFaultVFS
import PrismStore
import Synchronization

/// Keeps what a process that is killed in a start leaves: the folder as it is at one of its I/O calls or moves of a file.
final class KillPoint: Sendable {
  private struct State {
    var steps = 0
    var isReached = false
  }

  private let folder: FaultFolder
  /// The files that are left.
  let remains = FaultFolder()
  private let step: Int
  private let atIt: @Sendable () -> Void
  private let state = Mutex(State())

  /// - Parameter step: counted from 1.
  /// - Parameter atIt: what happens just before.
  init(_ folder: FaultFolder, step: Int, atIt: @escaping @Sendable () -> Void = {}) {
    (self.folder, self.step, self.atIt) = (folder, step, atIt)
  }

  var isReached: Bool { state.withLock { $0.isReached } }

  func take() {
    state.withLock { state in
      state.steps += 1
      guard state.steps == step else { return }
      reach(&state)
    }
  }

  /// The process is killed now, if it still runs.
  func end() {
    state.withLock { state in
      if !state.isReached { reach(&state) }
    }
  }

  private func reach(_ state: inout State) {
    state.isReached = true
    atIt()
    folder.copy(to: remains)
  }

  func watching<Result>(_ body: () async throws -> Result) async rethrows -> Result {
    fvfs_on_change(
      { context in
        guard let context else { return }
        Unmanaged<KillPoint>.fromOpaque(context).takeUnretainedValue().take()
      }, Unmanaged.passUnretained(self).toOpaque())
    defer { fvfs_on_change(nil, nil) }
    return try await body()
  }
}
