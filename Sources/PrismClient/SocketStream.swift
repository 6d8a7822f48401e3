import Glibc
import PrismBase

/// A connected Unix socket that writes and reads at once, so that neither side waits for the other with full buffers.
/// It blocks.
package final class SocketStream {
  private let path: String
  private let descriptor: Int32
  private let timeoutMilliseconds: Int32
  private let stop: Int32
  private let onSilence: () -> Bool
  private var input: [UInt8] = []
  private var consumed = 0
  private var hasWritten = false

  /// - Parameter timeout: how long the other side may be silent; nil: for ever.
  /// - Parameter stop: a descriptor whose end means that the caller waits no more; -1: no descriptor.
  /// - Parameter onSilence: whether to wait for as long again; asked after each `timeout`.
  /// - Throws: `unreachable`.
  package init(
    path: String, timeout: Duration?, stop: Int32 = -1, onSilence: @escaping () -> Bool = { false }
  ) throws(ClientError) {
    (self.path, self.stop, self.onSilence) = (path, stop, onSilence)
    timeoutMilliseconds = timeout.map { Int32(clamping: Int64($0 / .milliseconds(1))) } ?? -1
    guard let address = UnixAddress(path: path) else { throw .unreachable(socket: path, errno: ENAMETOOLONG) }
    descriptor = address.connect()
    guard descriptor >= 0 else { throw .unreachable(socket: path, errno: errno) }
    _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Writes `first`, then what `next` gives, chunk by chunk, until it gives nil, and hands each line that comes to `onLine`,
  /// until that answers true (enough has come).
  /// - Throws: also `connectionLost`; if no byte of this exchange had left, no report of it can be stored.
  package func exchange(
    _ first: [UInt8], then next: () -> [UInt8]? = { nil }, onLine: ([UInt8]) throws(ClientError) -> Bool
  ) throws(ClientError) {
    var (output, written): ([UInt8]?, Int) = (first, 0)
    hasWritten = false
    while true {
      while let line = nextLine() { if try onLine(line) { return } }
      let events = try wait(toWrite: output != nil)
      // Before writing: who has closed may have said why, and what is read is looked at before the end is.
      if events & Int16(POLLIN | POLLHUP | POLLERR) != 0 {
        try read()
      } else if let chunk = output {
        written += try write(chunk, from: written)
        if written == chunk.count { (output, written) = (next(), 0) }
      }
    }
  }

  private func wait(toWrite: Bool) throws(ClientError) -> Int16 {
    var entries = [
      pollfd(fd: descriptor, events: Int16(toWrite ? POLLIN | POLLOUT : POLLIN), revents: 0),
      pollfd(fd: stop, events: 0, revents: 0),
    ]
    while true {
      let count = poll(&entries, 2, timeoutMilliseconds)
      if count > 0, entries[1].revents == 0 { return entries[0].revents }
      if count > 0 { throw .connectionLost(socket: path, mayBeStored: hasWritten) }
      if count == 0, onSilence() { continue }
      if count == 0 { throw .timedOut(socket: path) }
      guard errno == EINTR else { throw .connectionLost(socket: path, mayBeStored: hasWritten) }
    }
  }

  private func write(_ bytes: [UInt8], from start: Int) throws(ClientError) -> Int {
    let count = bytes.withUnsafeBytes {
      send(descriptor, $0.baseAddress! + start, bytes.count - start, Int32(MSG_NOSIGNAL))
    }
    if count >= 0 {
      hasWritten = true
      return count
    }
    guard errno == EAGAIN || errno == EINTR else {
      // Answers that came before the other side closed are still to be read.
      try read()
      return 0
    }
    return 0
  }

  private func read() throws(ClientError) {
    if consumed > 0 {
      input.removeFirst(consumed)
      consumed = 0
    }
    var chunk = [UInt8](repeating: 0, count: 64 * 1024)
    let count = recv(descriptor, &chunk, chunk.count, 0)
    if count > 0 {
      input += chunk[..<count]
    } else if count == 0 || (errno != EAGAIN && errno != EINTR) {
      throw .connectionLost(socket: path, mayBeStored: hasWritten)
    }
  }

  private func nextLine() -> [UInt8]? {
    guard let end = input[consumed...].firstIndex(of: UInt8(ascii: "\n")) else { return nil }
    defer { consumed = end + 1 }
    return Array(input[consumed..<end])
  }
}
