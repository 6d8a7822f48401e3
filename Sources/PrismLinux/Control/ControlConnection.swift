import CLinux
import Dispatch
import Glibc
import PrismBase
import PrismProtocol

/// One client of the control socket. Shares its server's queue.
actor ControlConnection {
  static let lineBytesMax = 64 * 1024

  private nonisolated let executor: DispatchQueueExecutor
  private let descriptor: Int32
  private let handler: ControlServer.Handler
  private let onClose: @Sendable (ControlConnection) -> Void

  private var input = LineBuffer(lineBytesMax: ControlConnection.lineBytesMax)
  /// Nothing more will come; answers may still be wanted (`shutdown(SHUT_WR)`, as `nc -N` does).
  private var hasEnded = false
  private var isClosed = false
  private var work: Task<Void, Never>?
  private var lineWaiter: CheckedContinuation<Void, Never>?
  private var writeWaiter: CheckedContinuation<Void, Never>?

  private var readSource: (any DispatchSourceRead)?
  private var isReadSuspended = false
  private var writeSource: (any DispatchSourceWrite)?
  private var hangUpTimer: (any DispatchSourceTimer)?
  /// Sources on the descriptor that have not run their cancel handler: only then may it be closed.
  private var watchers = 0

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  init(
    descriptor: Int32, executor: DispatchQueueExecutor, handler: @escaping ControlServer.Handler,
    onClose: @escaping @Sendable (ControlConnection) -> Void
  ) {
    (self.descriptor, self.executor, self.handler, self.onClose) = (descriptor, executor, handler, onClose)
  }

  func start() {
    let source = DispatchSource.makeReadSource(fileDescriptor: descriptor, queue: executor.queue)
    source.setEventHandler { [weak self] in self?.assumeIsolated { $0.readAvailable() } }
    source.setCancelHandler { self.assumeIsolated { $0.watcherEnded() } }
    watchers += 1
    readSource = source
    source.activate()
    work = Task { await serve() }
  }

  /// Ends everything that runs for this client. Safe to call again.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    work?.cancel()
    hangUpTimer?.cancel()
    resume(&lineWaiter)
    resume(&writeWaiter)
    writeSource?.cancel()
    if isReadSuspended { readSource?.resume() }
    readSource?.cancel()
    (readSource, writeSource, hangUpTimer) = (nil, nil, nil)
    if watchers == 0 { Glibc.close(descriptor) }
    onClose(self)
  }

  private func watcherEnded() {
    watchers -= 1
    if isClosed && watchers == 0 { Glibc.close(descriptor) }
  }

  private func resume(_ waiter: inout CheckedContinuation<Void, Never>?) {
    waiter?.resume()
    waiter = nil
  }

  // MARK: Requests

  private func serve() async {
    while let next = await nextLine() {
      guard case .line(let line) = next else {
        await send(ControlAnswer.error("a request is at most \(Self.lineBytesMax) bytes long", .usage))
        break
      }
      await answer(line)
    }
    close()
  }

  private func answer(_ line: [UInt8]) async {
    let request: ControlRequest
    do { request = try ControlRequest(parsing: line) } catch {
      return await send(ControlAnswer.error(error.message, .usage))
    }
    for await answer in handler(request) {
      await send(answer)
      if isClosed { return }
    }
  }

  /// The next line, or `tooLong`; nil when there will be none.
  private func nextLine() async -> LineBuffer.Next? {
    while !isClosed {
      let next = input.next()
      if isReadSuspended && !input.isFull {
        isReadSuspended = false
        readSource?.resume()
      }
      guard case .incomplete = next else { return next }
      if hasEnded { return nil }
      await withCheckedContinuation { lineWaiter = $0 }
    }
    return nil
  }

  // MARK: Bytes

  private func readAvailable() {
    guard !isClosed, !isReadSuspended else { return }
    var chunk = [UInt8](repeating: 0, count: 16 * 1024)
    let count = recv(descriptor, &chunk, chunk.count, 0)
    if count > 0 {
      input.append(chunk[..<count])
      if input.isFull {
        isReadSuspended = true
        readSource?.suspend()
      }
      resume(&lineWaiter)
    } else if count == 0 {
      inputEnded()
    } else if errno != EAGAIN && errno != EINTR {
      close()
    }
  }

  /// The client closed its side or all of it. Reading tells no more from here on: the source would only spin.
  private func inputEnded() {
    hasEnded = true
    guard !isHungUp else { return close() }
    readSource?.cancel()
    readSource = nil
    let timer = DispatchSource.makeTimerSource(queue: executor.queue)
    timer.setEventHandler { [weak self] in self?.assumeIsolated { if $0.isHungUp { $0.close() } } }
    timer.schedule(deadline: .now() + 1, repeating: 1, leeway: .milliseconds(500))
    hangUpTimer = timer
    timer.activate()
    resume(&lineWaiter)
  }

  /// The client closed both directions: nobody reads an answer.
  private var isHungUp: Bool {
    var look = pollfd(fd: descriptor, events: 0, revents: 0)
    return poll(&look, 1, 0) > 0 && look.revents & Int16(POLLHUP | POLLERR) != 0
  }

  /// Returns when the socket has taken all of it, or the connection was closed.
  private func send(_ answer: JSONValue) async {
    let line = answer.bytes + [0x0A]
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
    let source = DispatchSource.makeWriteSource(fileDescriptor: descriptor, queue: executor.queue)
    source.setEventHandler { [weak self] in self?.assumeIsolated { $0.resume(&$0.writeWaiter) } }
    source.setCancelHandler { self.assumeIsolated { $0.watcherEnded() } }
    watchers += 1
    writeSource = source
    await withCheckedContinuation {
      writeWaiter = $0
      source.activate()
    }
    source.cancel()
    writeSource = nil
  }
}
