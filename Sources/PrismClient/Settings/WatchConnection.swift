import Glibc
import PrismBase

/// A connection that asks once and then receives lines, until it is stopped. It blocks its caller.
final class WatchConnection {
  /// A longer line is no line of the daemon.
  private static let lineBytesMax = 1024 * 1024

  private let descriptor: Int32
  /// Readable once the receiver must stop.
  private let stop: Int32
  private var input: [UInt8] = []

  /// nil: no daemon takes the question.
  init?(path: String, question: [UInt8], stop: Int32) {
    guard let address = UnixAddress(path: path) else { return nil }
    (descriptor, self.stop) = (address.connect(), stop)
    guard descriptor >= 0 else { return nil }
    guard send(descriptor, question, question.count, Int32(MSG_NOSIGNAL)) == question.count else { return nil }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Waits for the next line. - Returns: nil once the connection has ended, or the receiver must stop.
  func nextLine() -> [UInt8]? {
    while true {
      if let end = input.firstIndex(of: UInt8(ascii: "\n")) {
        defer { input.removeFirst(end + 1) }
        return Array(input[..<end])
      }
      guard input.count <= Self.lineBytesMax, Self.waitForInput(of: descriptor, or: stop) else { return nil }
      var chunk = [UInt8](repeating: 0, count: 16 * 1024)
      let count = recv(descriptor, &chunk, chunk.count, 0)
      guard count > 0 || count < 0 && (errno == EINTR || errno == EAGAIN) else { return nil }
      input += chunk.prefix(max(0, count))
    }
  }

  /// - Returns: false once the receiver must stop.
  private static func waitForInput(of descriptor: Int32, or stop: Int32) -> Bool {
    var entries = [
      pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0), pollfd(fd: stop, events: Int16(POLLIN), revents: 0),
    ]
    while true {
      let count = poll(&entries, 2, -1)
      if count > 0 { return entries[1].revents == 0 }
      guard count == 0 || errno == EINTR else { return false }
    }
  }
}
