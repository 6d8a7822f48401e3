import CLinux
import Glibc
import PrismControl
import PrismProtocol

/// One client of the control socket. Shares its server's thread.
actor ControlConnection {
  static let lineBytesMax = 64 * 1024

  private nonisolated let loop: SocketLoop
  nonisolated let caller: ControlCaller
  private let descriptor: Int32
  private let handler: ControlServer.Handler
  private let onClose: @Sendable (ControlConnection) -> Void

  private var input = LineBuffer(lineBytesMax: ControlConnection.lineBytesMax)
  /// Nothing more will come; answers may still be wanted (`shutdown(SHUT_WR)`, as `nc -N` does).
  private var hasEnded = false
  private var work: Task<Void, Never>?
  private var lineWaiter: CheckedContinuation<Void, Never>?
  private var writeWaiter: CheckedContinuation<Void, Never>?

  /// nil: closed, or not begun.
  private var watch: SocketLoop.Watch?

  nonisolated var unownedExecutor: UnownedSerialExecutor { loop.asUnownedSerialExecutor() }

  init(
    descriptor: Int32, caller: ControlCaller, loop: SocketLoop, handler: @escaping ControlServer.Handler,
    onClose: @escaping @Sendable (ControlConnection) -> Void
  ) {
    (self.descriptor, self.caller, self.loop) = (descriptor, caller, loop)
    (self.handler, self.onClose) = (handler, onClose)
  }

  /// - Parameter id: what the loop calls it. - Returns: false where the kernel has no room for it; then it is closed.
  func start(id: Int) -> Bool {
    watch = loop.watch(descriptor, id: id)
    guard watch != nil else {
      Glibc.close(descriptor)
      return false
    }
    work = Task { await serve() }
    return true
  }

  /// Ends everything that runs for this client. Safe to call again.
  func close() {
    guard let watch else { return }
    self.watch = nil
    work?.cancel()
    resume(&lineWaiter)
    resume(&writeWaiter)
    watch.end()
    Glibc.close(descriptor)
    onClose(self)
  }

  private var isClosed: Bool { watch == nil }

  /// Nothing is read while there is enough to do: the client feels the socket's backpressure.
  private func updateWatch() { watch?.set(reads: !hasEnded && !input.isFull, writes: writeWaiter != nil) }

  func ready() {
    guard let watch else { return }
    if watch.writes { resume(&writeWaiter) }
    if watch.reads { readAvailable() } else if isHungUp { close() }
    updateWatch()
  }

  private func resume(_ waiter: inout CheckedContinuation<Void, Never>?) {
    waiter?.resume()
    waiter = nil
  }

  // MARK: Requests

  private func serve() async {
    while let next = await nextLine() {
      guard case .line(let line) = next else {
        await send(ExitCode.usage.failure("a request is at most \(Self.lineBytesMax) bytes long").line)
        break
      }
      await answer(line)
    }
    close()
  }

  private func answer(_ line: [UInt8]) async {
    let request: ControlRequest
    do { request = try ControlRequest(parsing: line) } catch {
      return await send(ExitCode.usage.failure(error.message).line)
    }
    for await answer in handler(request, caller) {
      await send(answer)
      if isClosed { return }
    }
  }

  /// The next line, or `tooLong`; nil if no further line can come.
  private func nextLine() async -> LineBuffer.Next? {
    while !isClosed {
      let next = input.next()
      updateWatch()
      guard case .incomplete = next else { return next }
      if hasEnded { return nil }
      await withCheckedContinuation { lineWaiter = $0 }
    }
    return nil
  }

  // MARK: Bytes

  private func readAvailable() {
    var chunk = [UInt8](repeating: 0, count: 16 * 1024)
    let count = recv(descriptor, &chunk, chunk.count, 0)
    if count > 0 {
      input.append(chunk[..<count])
      resume(&lineWaiter)
    } else if count == 0 {
      inputEnded()
    } else if errno != EAGAIN && errno != EINTR {
      close()
    }
  }

  /// The client closed its side, or all of it. Reading tells no more from here on.
  private func inputEnded() {
    hasEnded = true
    if isHungUp { close() } else { resume(&lineWaiter) }
  }

  /// The client closed both directions, so it reads no answer.
  private var isHungUp: Bool {
    var look = pollfd(fd: descriptor, events: 0, revents: 0)
    return poll(&look, 1, 0) > 0 && look.revents & Int16(POLLHUP | POLLERR) != 0
  }

  /// Returns when the socket has taken all of it, or the connection was closed.
  private func send(_ answer: JSONValue) async {
    let line = answer.bytes + [UInt8(ascii: "\n")]
    var sent = 0
    while !isClosed && sent < line.count {
      let count = line.withUnsafeBytes { prism_send(descriptor, $0.baseAddress! + sent, line.count - sent) }
      if count >= 0 {
        sent += count
      } else if errno == EAGAIN {
        await writable()
      } else if errno != EINTR {
        close()
      }
    }
  }

  private func writable() async {
    await withCheckedContinuation {
      writeWaiter = $0
      updateWatch()
    }
  }
}

/// Bytes in, lines out, and never more held than one line's limit (and what came with it).
struct LineBuffer {
  enum Next: Equatable {
    case line([UInt8])
    /// The line is not whole yet.
    case incomplete
    /// Whole or not, it is longer than allowed.
    case tooLong
  }

  let lineBytesMax: Int
  private var bytes: [UInt8] = []
  private var scanned = 0

  init(lineBytesMax: Int) { self.lineBytesMax = lineBytesMax }

  /// Reading on would hold more than a line.
  var isFull: Bool { bytes.count > lineBytesMax }

  mutating func append(_ new: some Collection<UInt8>) { bytes += new }

  /// Takes the next line, without its line feed and a carriage return before it.
  mutating func next() -> Next {
    guard let end = bytes[scanned...].firstIndex(of: UInt8(ascii: "\n")) else {
      scanned = bytes.count
      return bytes.count > lineBytesMax ? .tooLong : .incomplete
    }
    var line = Array(bytes[..<end])
    bytes.removeSubrange(...end)
    scanned = 0
    guard line.count <= lineBytesMax else { return .tooLong }
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    return .line(line)
  }
}
