import Glibc
import PrismProtocol
import Synchronization

/// The death of a daemon at a moment of a command. Its files are kept as they are then, and nothing that it does later counts.
final class CommandDeath: Sendable {
  enum Moment: Sendable {
    /// The command waits for its turn.
    case accepted
    /// It is written down as running.
    case begins
    /// Its tool is asked for.
    case asks
    case runs
    /// It is over, and no one knows how but the daemon.
    case ran
    /// Its end is written down.
    case ended
    /// The server has its end.
    case uploaded
  }

  private static let files = ["prism.db", "prism.db-wal"]

  let folder = Mutex("")
  private let state = Mutex<(at: Moment?, isOver: Bool)>((nil, false))

  var isOver: Bool { state.withLock { $0.isOver } }

  /// Of the daemon that runs now, or of the next one.
  func comes(at moment: Moment) { state.withLock { $0 = (moment, false) } }

  /// - Returns: whether the daemon is dead.
  @discardableResult
  func passes(_ moment: Moment) -> Bool {
    state.withLock { state in
      guard state.at == moment, !state.isOver else { return state.isOver }
      state.isOver = true
      let folder = folder.withLock { $0 }
      for name in Self.files { Self.copy("\(folder)/\(name)", to: "\(folder)/kept-\(name)") }
      return true
    }
  }

  /// The daemon's own end: its files are those of its death.
  func leave() {
    state.withLock { state in
      let folder = folder.withLock { $0 }
      if state.isOver { for name in Self.files { rename("\(folder)/kept-\(name)", "\(folder)/\(name)") } }
      state = (nil, false)
    }
  }

  private static func copy(_ source: String, to target: String) {
    let (input, output) = (open(source, O_RDONLY), open(target, O_WRONLY | O_CREAT | O_TRUNC, 0o600))
    defer {
      close(input)
      close(output)
    }
    var bytes = [UInt8](repeating: 0, count: 65536)
    while case let count = read(input, &bytes, bytes.count), count > 0 { write(output, bytes, count) }
  }
}
