import CArguments
import Glibc

/// The whole terminal: keys come one by one, the cursor is gone, and what was there before comes back at the end, also
/// where a signal ends the program.
final class Screen {
  enum Event: Equatable {
    /// A signal, or the end of the terminal.
    case quit
    case resized
    case keys([UInt8])
    case nothing
  }

  private let original: termios
  /// Each is a byte of it.
  private let signals: Int32

  /// nil: standard input or output is no terminal.
  init?() {
    var settings = termios()
    guard Terminal.outputIsTerminal, tcgetattr(STDIN_FILENO, &settings) == 0 else { return nil }
    signals = prism_take_signals([SIGTERM, SIGHUP, SIGINT, SIGWINCH], 4)
    guard signals >= 0 else { return nil }
    original = settings
    cfmakeraw(&settings)
    tcsetattr(STDIN_FILENO, TCSANOW, &settings)
    Terminal.write(STDOUT_FILENO, "\u{1B}[?1049h\u{1B}[?25l")
  }

  func close() {
    Terminal.write(STDOUT_FILENO, "\u{1B}[?25h\u{1B}[?1049l")
    var settings = original
    tcsetattr(STDIN_FILENO, TCSANOW, &settings)
  }

  var size: TopFrame.Size { Self.size ?? TopFrame.Size(columns: 80, rows: 24) }

  /// nil: standard output is no terminal.
  static var size: TopFrame.Size? {
    var window = winsize()
    guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0, window.ws_row > 0 else { return nil }
    return TopFrame.Size(columns: Int(window.ws_col), rows: Int(window.ws_row))
  }

  func draw(_ lines: [String]) {
    let text = lines.map { $0 + "\u{1B}[K" }.joined(separator: "\r\n")
    Terminal.write(STDOUT_FILENO, "\u{1B}[H\(text)\u{1B}[J")
  }

  /// Waits for a key, a signal or the time.
  func wait(milliseconds: Int) -> Event {
    var looks = [
      pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0),
      pollfd(fd: signals, events: Int16(POLLIN), revents: 0),
    ]
    guard poll(&looks, 2, Int32(clamping: milliseconds)) > 0 else { return .nothing }
    if looks[1].revents != 0 { return Self.read(signals).allSatisfy { $0 == UInt8(SIGWINCH) } ? .resized : .quit }
    let keys = Self.read(STDIN_FILENO)
    return keys.isEmpty ? .quit : .keys(Array(keys))
  }

  private static func read(_ descriptor: Int32) -> ArraySlice<UInt8> {
    var bytes = [UInt8](repeating: 0, count: 64)
    return bytes[..<max(0, Glibc.read(descriptor, &bytes, bytes.count))]
  }
}
