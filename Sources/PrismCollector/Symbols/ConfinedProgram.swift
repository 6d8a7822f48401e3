import CSymbols
import Glibc

/// A program that is run for its output over hostile files: it can read files and nothing else. Blocks until it has ended.
struct ConfinedProgram {
  let cpuSeconds: UInt32, seconds: Int
  let memoryBytes: Int, outputBytesMax: Int

  /// The output of a program.
  struct Ran {
    /// Why the output may not be whole; nil: it exited by itself, with 0 or with 1.
    var fault: String?
    var output: [UInt8]
  }

  /// - Parameter words: an absolute path, then the arguments.
  func run(_ words: [String]) -> Ran {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { return Ran(fault: String(cString: strerror(errno)), output: []) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    defer { close(ends[0]) }
    var arguments = words.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    let limits = prism_confinement(cpu_seconds: cpuSeconds, memory_bytes: UInt(memoryBytes))
    let child = prism_start_confined(&arguments, ends[1], limits)
    let code = errno
    close(ends[1])
    guard child > 0 else { return Ran(fault: String(cString: strerror(code)), output: []) }
    let (output, fault) = read(ends[0])
    kill(child, SIGKILL)  // one that has closed its output may go on
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0 && errno == EINTR {}
    return Ran(fault: fault ?? Self.fault(of: status), output: output)
  }

  private static func fault(of status: Int32) -> String? {
    switch (status & 0x7F, (status >> 8) & 0xFF) {
    case (0, 0), (0, 1): nil
    case (0, 126): "it can't be confined: seccomp is needed"
    case (0, let code): "it exits with \(code)"
    case (SIGXCPU, _): "its time is over"
    case (let signal, _): "signal \(signal) ended it"
    }
  }

  /// - Returns: the output, and why there may be more.
  private func read(_ descriptor: Int32) -> ([UInt8], fault: String?) {
    let deadline = ContinuousClock.now + .seconds(seconds)
    var (output, chunk) = ([UInt8](), [UInt8](repeating: 0, count: 64 * 1024))
    while output.count <= outputBytesMax {
      let rest = Int32((deadline - ContinuousClock.now) / .milliseconds(1))
      var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
      guard rest > 0 else { return (output, "its time is over") }
      guard poll(&waiting, 1, rest) > 0 else { continue }
      let count = Glibc.read(descriptor, &chunk, chunk.count)
      if count == 0 { return (output, nil) }
      if count > 0 { output += chunk[..<count] }
    }
    return (output, "its output is over \(outputBytesMax) bytes")
  }
}
