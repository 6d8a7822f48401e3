import Glibc

/// A connection's descriptor, closed with the last reference to it.
final class SharedDescriptor: Sendable {
  let number: Int32
  init(_ number: Int32) { self.number = number }
  deinit { close(number) }

  /// - Returns: the bytes read, 0 at the end, -1 with `errno`.
  ///
  /// A plain read has no room for descriptors that were sent along: the kernel closes them, they never become ours.
  func read(into buffer: inout [UInt8]) -> Int {
    while true {
      let count = buffer.withUnsafeMutableBytes { Glibc.read(number, $0.baseAddress, $0.count) }
      if count >= 0 || errno != EINTR { return count }
    }
  }

  /// - Returns: the number of bytes that were taken, 0 if the socket is full; nil if the peer reads no more.
  func write(_ bytes: ArraySlice<UInt8>) -> Int? {
    while true {
      let count = bytes.withUnsafeBytes { send(number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      if count >= 0 { return count }
      switch errno {
      case EINTR: continue
      case EAGAIN, ENOBUFS, ENOMEM: return 0
      default: return nil
      }
    }
  }

  func shutWriting() { shutdown(number, Int32(SHUT_WR)) }

  /// Whether the other end has closed the connection before it took an answer. - Parameter isAnswered: the answer was sent.
  func isLost(isAnswered: Bool) -> Bool {
    let hangup = Int16(POLLERR) | (isAnswered ? 0 : Int16(POLLHUP) | 0x2000)  // POLLRDHUP
    var entry = pollfd(fd: number, events: Int16(POLLIN) | 0x2000, revents: 0)
    return poll(&entry, 1, 0) > 0 && entry.revents & hangup != 0
  }

  /// Whether the other end has all that was written: over TCP its kernel acknowledged it, else its program read it.
  var isDrained: Bool {
    var bytes: Int32 = 0
    return ioctl(number, UInt(TIOCOUTQ), &bytes) == 0 && bytes == 0
  }

  /// The first unread byte; nil if there is no unread byte.
  static func peek(_ descriptor: Int32) -> UInt8? {
    var byte: UInt8 = 0
    let flags = Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)
    return recv(descriptor, &byte, 1, flags) == 1 ? byte : nil
  }
}
