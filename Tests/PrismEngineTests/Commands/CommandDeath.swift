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
    /// It is over, and only the daemon knows how.
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
      keep(folder.withLock { $0 })
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

  /// The daemon may go on writing: files that are twice the same were so in between.
  private func keep(_ folder: String) {
    var (before, now): ([[UInt8]], [[UInt8]]) = ([], [])
    repeat {
      (before, now) = (now, Self.files.map { Self.read("\(folder)/\($0)") })
    } while before != now
    for (name, bytes) in zip(Self.files, now) { Self.write(bytes, to: "\(folder)/kept-\(name)") }
  }

  private static func read(_ path: String) -> [UInt8] {
    let descriptor = open(path, O_RDONLY)
    defer { close(descriptor) }
    var (all, bytes): ([UInt8], [UInt8]) = ([], .init(repeating: 0, count: 65536))
    while case let count = Glibc.read(descriptor, &bytes, bytes.count), count > 0 { all += bytes[..<count] }
    return all
  }

  private static func write(_ bytes: [UInt8], to path: String) {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    defer { close(descriptor) }
    precondition(Glibc.write(descriptor, bytes, bytes.count) == bytes.count)
  }
}
