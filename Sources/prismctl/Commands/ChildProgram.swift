import Glibc
import PrismBase
import PrismProtocol
import Synchronization

/// The result of a program that was run to its end.
struct ChildProgram {
  /// The program's own; 128 and the signal's number if a signal ended it, as a shell says it.
  private(set) var exitCode: Int32 = 0
  private(set) var signal: Int32?
  private(set) var duration: Duration = .zero
  private(set) var usage = rusage()
  /// Why its output can't be passed on, but for a reader that has gone: the program learns of that by SIGPIPE.
  private(set) var outputFault: String?
  /// The end of standard output and standard error, for the report.
  private(set) var lastOutput = LastOutput(bytesMax: 8 * 1024)

  func meta(name: String) -> JSONValue {
    var members: [JSONValue.Member] = [
      .init("command", .string(name)), .init("exitCode", .int(Int(exitCode))),
      .init("durationMs", .int(Int(duration.wholeMilliseconds))),
      .init("userMs", .int(Self.milliseconds(usage.ru_utime))),
      .init("systemMs", .int(Self.milliseconds(usage.ru_stime))), .init("maxMemoryKByte", .int(usage.ru_maxrss)),
    ]
    if let signal { members.append(.init("signal", .int(Int(signal)))) }
    if let outputFault { members.append(.init("outputError", .string(outputFault))) }
    return .object(members)
  }

  private static func milliseconds(_ time: timeval) -> Int { time.tv_sec * 1000 + Int(time.tv_usec) / 1000 }

  /// Runs a program, found along `PATH`, with this process's standard input; its output is passed on.
  /// - Throws: 127 if it is missing, 126 if it can't be run, as a shell says it.
  static func run(_ words: [String]) throws(Failure) -> ChildProgram {
    let (output, error) = (try pipe(), try pipe())
    defer { for end in [output.read, error.read] { close(end) } }
    let start = ContinuousClock.now
    let process = try spawn(words, output: output.write, error: error.write)
    passOnSignals(to: process)
    var result = ChildProgram()
    result.relay([(output.read, STDOUT_FILENO), (error.read, STDERR_FILENO)], until: process)
    result.duration = ContinuousClock.now - start
    return result
  }

  private static func pipe() throws(Failure) -> (read: Int32, write: Int32) {
    var ends: [Int32] = [-1, -1]
    guard Glibc.pipe(&ends) == 0 else { throw Failure(Failure.unavailable, "run: \(Files.reason())") }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
    return (ends[0], ends[1])
  }

  private static func spawn(_ words: [String], output: Int32, error: Int32) throws(Failure) -> pid_t {
    defer { for end in [output, error] { close(end) } }
    // prismctl ignores SIGPIPE.
    do throws(ChildStart.Fault) {
      return try ChildStart.start(words, input: STDIN_FILENO, output: output, error: error, heeding: SIGPIPE)
    } catch {
      let isMissing = error.code == ENOENT
      throw Failure(isMissing ? 127 : 126, "\(words[0]): \(String(cString: strerror(error.code))): not run")
    }
  }

  private static let running = Atomic<pid_t>(0)

  /// Ends of this process are the program's to handle. A terminal sends its signals to both.
  private static func passOnSignals(to process: pid_t) {
    running.store(process, ordering: .sequentiallyConsistent)
    for number in [SIGTERM, SIGHUP, SIGUSR1, SIGUSR2] {
      Glibc.signal(number) { number in
        let process = ChildProgram.running.load(ordering: .sequentiallyConsistent)
        if process > 0 { kill(process, number) }
      }
    }
    for number in [SIGINT, SIGQUIT] { Glibc.signal(number) { _ in } }
  }

  /// Passes output on until the program has ended. A program that it has left behind does not keep it waiting.
  private mutating func relay(_ streams: [(from: Int32, to: Int32)], until process: pid_t) {
    var open = streams
    var hasEnded = false
    while !hasEnded || !open.isEmpty {
      hasEnded = hasEnded || take(endOf: process, waits: open.isEmpty)
      var files = open.map { pollfd(fd: $0.from, events: Int16(POLLIN), revents: 0) }
      guard poll(&files, nfds_t(files.count), hasEnded ? 0 : 50) > 0 else {
        if hasEnded { return }
        continue
      }
      open = open.filter { passOn($0.from, $0.to) }
    }
  }

  /// - Returns: whether more may come.
  private mutating func passOn(_ from: Int32, _ to: Int32) -> Bool {
    var chunk = [UInt8](repeating: 0, count: 64 * 1024)
    let count = read(from, &chunk, chunk.count)
    guard count > 0 else { return count < 0 && (errno == EAGAIN || errno == EINTR) }
    lastOutput.append(chunk[..<count], of: from)
    if StandardStreams.write(chunk[..<count], to: to) { return true }
    if errno != EPIPE { outputFault = outputFault ?? Files.reason() }
    // The program's next write fails, as it would without this command.
    let nothing = open("/dev/null", O_RDONLY | O_CLOEXEC)
    _ = dup2(nothing, from)
    _ = fcntl(from, F_SETFD, FD_CLOEXEC)
    close(nothing)
    return false
  }

  private mutating func take(endOf process: pid_t, waits: Bool) -> Bool {
    var status: Int32 = 0
    guard wait4(process, &status, waits ? 0 : WNOHANG, &usage) == process else { return false }
    Self.running.store(0, ordering: .sequentiallyConsistent)
    let number = status & 0x7F
    signal = number == 0 ? nil : number
    exitCode = number == 0 ? (status >> 8) & 0xFF : 128 + number
    return true
  }
}

/// The end of what a program wrote, in the order in which it was read. The stream that writes much does not push out what
/// the other said: each keeps its half, and takes what the other does not use.
struct LastOutput {
  private struct Piece {
    let stream: Int32
    var bytes: ArraySlice<UInt8>
  }

  let bytesMax: Int
  private var pieces: [Piece] = []

  init(bytesMax: Int) { self.bytesMax = bytesMax }

  var bytes: [UInt8] { pieces.flatMap(\.bytes) }

  mutating func append(_ chunk: ArraySlice<UInt8>, of stream: Int32) {
    pieces.append(Piece(stream: stream, bytes: chunk.suffix(bytesMax)))
    var excess = pieces.reduce(-bytesMax) { $0 + $1.bytes.count }
    for index in pieces.indices where excess > 0 {
      let dropped = min(excess, pieces[index].bytes.count, bytesOverHalf(of: pieces[index].stream))
      pieces[index].bytes.removeFirst(dropped)
      excess -= dropped
    }
    pieces.removeAll(where: \.bytes.isEmpty)
  }

  private func bytesOverHalf(of stream: Int32) -> Int {
    max(0, pieces.reduce(-bytesMax / 2) { $1.stream == stream ? $0 + $1.bytes.count : $0 })
  }
}
