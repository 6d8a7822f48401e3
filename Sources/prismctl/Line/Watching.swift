import Glibc
import PrismBase
import PrismProtocol

/// `--watch`: a command again and again, until Ctrl-C. On a terminal each output replaces the one before.
@MainActor
enum Watching {
  /// - Throws: 64 and 77, which another try would not mend. Any other failure is printed, and the next try comes.
  static func run(_ invocation: Invocation, everySeconds seconds: Int) async throws(Failure) {
    signal(SIGPIPE, SIG_DFL)  // `prismctl status --watch | head` ends with head
    var isFirst = true
    while true {
      if Terminal.outputIsTerminal {
        Terminal.write(STDOUT_FILENO, "\u{1B}[H\u{1B}[2J")
        print("every \(seconds) s: prismctl \(invocation.command.name) (Ctrl-C ends it)\n")
      } else if !isFirst && !invocation.has("--json") {
        print("")
      }
      isFirst = false
      do throws(Failure) { _ = try await invocation.run() } catch {
        if [Failure.usage, Failure.notPermitted].contains(error.exitCode) { throw error }
        if !error.message.isEmpty { Terminal.printError("prismctl: \(error.message.printableLines)") }
      }
      fflush(nil)
      sleep(UInt32(seconds))
    }
  }
}
