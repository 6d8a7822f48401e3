import Glibc
import PrismLinux
import PrismRecovery
import PrismStore
import Synchronization

/// Routes signals. A start that is asked to stop ends at once and does not count as one that died; a daemon that serves
/// gets an event.
final class SignalRoute: Sendable {
  private enum Stage {
    /// Nothing was begun that a stop would have to note.
    case idle
    case starting(StartMarker)
    case serving(@Sendable (SignalMonitor.Event) -> Void)
  }

  private struct State {
    var stage = Stage.idle
    var wantsReload = false
  }

  private let state = Mutex(State())

  func handle(_ event: SignalMonitor.Event) {
    state.withLock { state in
      switch (state.stage, event) {
      case (.idle, .stop): _exit(128 + SIGTERM)
      case (.starting(let marker), .stop):
        marker.stop()
        _exit(ExitCode.ok.rawValue)
      case (.idle, .reload), (.starting, .reload): state.wantsReload = true
      case (.serving(let tell), _): tell(event)
      }
    }
  }

  func begin(_ marker: StartMarker) { state.withLock { $0.stage = .starting(marker) } }

  func serve(_ tell: @escaping @Sendable (SignalMonitor.Event) -> Void) {
    state.withLock { state in
      state.stage = .serving(tell)
      if state.wantsReload { tell(.reload) }
    }
  }
}
