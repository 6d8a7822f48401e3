import Glibc
import PrismBase

/// A program that is run for its output. Blocks until it has ended, or its time is over.
enum ProgramRun {
  struct Ran {
    /// nil if a signal ended it, or its time was over.
    var exitCode: Int32?
    var output: [UInt8]
  }

  /// - Parameter words: an absolute path, then the arguments. - Parameter outputBytesMax: a program with more output is ended.
  /// - Parameter seconds: it is ended after them.
  /// - Returns: nil if it can't be started.
  static func run(_ words: [String], outputBytesMax: Int, seconds: Int) -> Ran? {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return nil }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    defer { close(ends[0]) }
    let process = start(words, output: ends[1])
    close(ends[1])
    guard let process else { return nil }
    let (output, end) = ChildOutput.read(ends[0], bytesMax: outputBytesMax, seconds: seconds)
    if end != .whole { kill(process, SIGKILL) }
    let status = ChildOutput.status(of: process)
    return Ran(exitCode: end == .whole && status & 0x7F == 0 ? (status >> 8) & 0xFF : nil, output: output)
  }

  private static func start(_ words: [String], output: Int32) -> pid_t? {
    let null = open("/dev/null", O_RDWR | O_CLOEXEC)
    guard null >= 0 else { return nil }
    defer { close(null) }
    return try? ChildStart.start(words, input: null, output: output, error: null)
  }
}
