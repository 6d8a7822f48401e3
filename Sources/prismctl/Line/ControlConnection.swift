import CLinux
import Glibc
import PrismBase
import PrismProtocol

/// Asks the daemon over its control socket: one request, one or more answers, the last with `"done":true`.
struct ControlConnection {
  private let path: String
  /// How long each part of an answer may take; nil: as long as it takes.
  private let timeoutSeconds: Int?
  /// Answers become JSON output, which escapes control characters by itself. Else all their strings are made printable
  /// here, for every command.
  private let isExact: Bool

  /// - Parameter isExact: nil: with `--json`.
  init(_ invocation: Invocation, timeoutSeconds: Int? = nil, isExact: Bool? = nil) {
    (path, self.timeoutSeconds) = (invocation.controlSocket, timeoutSeconds)
    self.isExact = isExact ?? invocation.has("--json")
  }

  init(path: String, timeoutSeconds: Int, isExact: Bool) {
    (self.path, self.timeoutSeconds, self.isExact) = (path, timeoutSeconds, isExact)
  }

  /// - Parameter onAnswer: each line as it comes, the last one included.
  /// - Throws: 69 if no program listens; the daemon's own exit code and text for an error of it.
  func ask(_ request: ControlRequest, _ onAnswer: (AnswerLine) throws(Failure) -> Void) throws(Failure) {
    guard !path.isEmpty else {
      throw .usage(
        "the control socket's path is empty; look at --control and $PRISM_CONTROL (unset it for the usual one)")
    }
    let descriptor = try connected()
    defer { close(descriptor) }
    try send(descriptor, request.bytes + [UInt8(ascii: "\n")])
    var input: [UInt8] = []
    while true {
      while let end = input.firstIndex(of: UInt8(ascii: "\n")) {
        let line = Array(input[..<end])
        input.removeFirst(end + 1)
        if try take(line, onAnswer) { return }
      }
      input += try receive(descriptor)
    }
  }

  /// Answers whether it was the last.
  private func take(_ line: [UInt8], _ onAnswer: (AnswerLine) throws(Failure) -> Void) throws(Failure) -> Bool {
    let answer: JSONValue
    do { answer = try JSONValue(parsing: line) } catch {
      throw Failure(
        Failure.software, "\(path): the daemon's answer is not JSON; are prismd and prismctl of one version?")
    }
    // The faults of a configuration are a line each; `runPrismctl` makes the lines printable.
    if let error = AnswerLine(answer)[Answers.error] {
      throw Failure(Int32(clamping: error.exitCode), error.message)
    }
    let line = AnswerLine(isExact ? answer : answer.printable())
    try onAnswer(line)
    return line[Answers.done] ?? false
  }

  private func connected() throws(Failure) -> Int32 {
    guard let address = UnixAddress(path: path) else {
      throw .usage("--control: a socket's path has at most \(UnixAddress.pathBytesMax) bytes")
    }
    let descriptor = address.connect()
    guard descriptor >= 0 else {
      if errno == EACCES || errno == EPERM {
        throw Failure(
          Failure.notPermitted, "\(path): \(Files.reason()); run it as root, or as a member of control.group")
      }
      throw Failure(
        Failure.unavailable, "\(path): \(Files.reason()); is prismd running (`systemctl status prismd`)?")
    }
    if let timeoutSeconds {
      var limit = timeval(tv_sec: timeoutSeconds, tv_usec: 0)
      setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }
    return descriptor
  }

  private func send(_ descriptor: Int32, _ bytes: [UInt8]) throws(Failure) {
    let count = bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    // A daemon that refuses this user may have closed already: what it said can be read all the same.
    guard count == bytes.count || errno == EPIPE || errno == ECONNRESET else {
      throw Failure(Failure.unavailable, "\(path): \(Files.reason())")
    }
  }

  private func receive(_ descriptor: Int32) throws(Failure) -> ArraySlice<UInt8> {
    var chunk = [UInt8](repeating: 0, count: 64 * 1024)
    while true {
      let count = recv(descriptor, &chunk, chunk.count, 0)
      if count > 0 { return chunk[..<count] }
      if count < 0 && errno == EINTR { continue }
      guard count == 0 || errno != EAGAIN else {
        throw Failure(Failure.unavailable, "\(path): the daemon does not answer")
      }
      throw Failure(Failure.unavailable, "\(path): the daemon closed the connection before its answer was complete")
    }
  }
}
