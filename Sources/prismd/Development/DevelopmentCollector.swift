import Glibc
import PrismBase
import PrismLinux

/// The collector of `prismd --dev`: a child that ends with this process, however that ends.
final class DevelopmentCollector: Sendable {
  /// Ends the collector when the other end of its input is closed, which the kernel does for a process that was killed.
  private static let keeper = """
    exec 3<&0 </dev/null
    "$@" 3<&- & collector=$!
    { cat <&3 >/dev/null; kill $collector 2>/dev/null; } &
    exec 3<&-
    wait $collector
    """

  private let process: pid_t
  /// Nothing is ever written to it.
  private let lifeline: Int32

  /// Starts the program that is beside this one, else the one in PATH.
  init(_ files: DevelopmentFiles) throws(StartFailure) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw Self.failure(errno) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    defer { close(ends[0]) }
    let words = ["/bin/sh", "-c", Self.keeper, "sh", Self.program, "--dev", "--config", files.collectorConfiguration]
    do throws(StartFailure) {
      (process, lifeline) = (try Self.start(words, input: ends[0], log: files.collectorLog), ends[1])
    } catch {
      close(ends[1])
      throw error
    }
  }

  private static var program: String {
    let words = (SymbolicLink.ownExecutable ?? "").split(separator: "/").dropLast()
    let beside = words.map { "/" + $0 }.joined() + "/prism-collector"
    return access(beside, X_OK) == 0 ? beside : "prism-collector"
  }

  private static func start(_ words: [String], input: Int32, log path: String) throws(StartFailure) -> pid_t {
    let log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard log >= 0 else { throw failure(errno) }
    defer { close(log) }
    // A terminal's Ctrl-C is for the daemon, which ends both.
    do throws(ChildStart.Fault) {
      return try ChildStart.start(words, input: input, output: log, error: log, ownGroup: true)
    } catch { throw failure(error.code) }
  }

  private static func failure(_ code: Int32) -> StartFailure {
    StartFailure(
      exitCode: .unavailable, message: "--dev: prism-collector can't be started: \(String(cString: strerror(code)))")
  }

  /// False once it has ended. Its number is free then: not asked again.
  var runs: Bool {
    var facts = siginfo_t()
    return waitid(P_PID, id_t(process), &facts, WEXITED | WNOHANG | WNOWAIT) == 0 && facts.si_signo == 0
  }

  /// Ends it and waits for its end.
  func stop() async {
    close(lifeline)
    while runs {
      do { try await SystemTime().sleep(for: .milliseconds(20)) } catch { return }
    }
    var status: Int32 = 0
    waitpid(process, &status, 0)
  }
}
