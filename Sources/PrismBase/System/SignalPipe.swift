import CLinux
import Glibc

/// Signals as bytes of a pipe, each its number, from the moment at which it is made until the process ends. A process has one.
///
/// libdispatch's own signal sources read a signalfd, which reports only signals that the process's first thread blocks. If an
/// ignored signal is not blocked, the kernel drops it, and whether that thread blocks signals depends on how it waits.
public struct SignalPipe: Sendable {
  /// The end that is read. It is not closed, and reading it never waits.
  public let descriptor: Int32

  /// nil: no descriptor is left, and the signals do what they did.
  public init?(_ numbers: [Int32]) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return nil }
    for end in ends {
      _ = fcntl(end, F_SETFD, FD_CLOEXEC)
      _ = fcntl(end, F_SETFL, O_NONBLOCK)
    }
    descriptor = ends[0]
    prism_tell_signals(ends[1])
    for number in numbers { signal(number, prism_signal_came) }
  }

  /// The signals that came since the last call, oldest first.
  public func read() -> [Int32] {
    var numbers = [UInt8](repeating: 0, count: 64)
    let count = Glibc.read(descriptor, &numbers, numbers.count)
    return numbers.prefix(max(0, count)).map { Int32($0) }
  }
}
