import Glibc
import PrismBase

/// Output for people: progress appears only on a terminal.
enum Terminal {
  static let outputIsTerminal = isatty(STDOUT_FILENO) == 1
  static let errorIsTerminal = isatty(STDERR_FILENO) == 1

  static func printError(_ text: String) { write(STDERR_FILENO, text + "\n") }

  /// A bar on one line of standard error that is drawn over; nothing where that is no terminal.
  /// - Parameter total: nil if it is not known.
  static func progress(_ label: String, done: Int, total: Int?) {
    guard errorIsTerminal else { return }
    guard let total, total > 0 else { return write(STDERR_FILENO, "\r\u{1B}[K\(label) \(done)") }
    let filled = 30 * min(done, total) / total
    let bar = String(repeating: "#", count: filled) + String(repeating: "-", count: 30 - filled)
    write(STDERR_FILENO, "\r\u{1B}[K\(label) [\(bar)] \(done)/\(total)")
  }

  /// A line beside the progress, on standard error.
  static func note(_ line: String) {
    endProgress()
    write(STDERR_FILENO, "prismctl: \(OutputText.line(line))\n")
  }

  static func endProgress() { if errorIsTerminal { write(STDERR_FILENO, "\r\u{1B}[K") } }

  static func write(_ descriptor: Int32, _ text: String) { StandardStreams.say(text, to: descriptor) }
}
