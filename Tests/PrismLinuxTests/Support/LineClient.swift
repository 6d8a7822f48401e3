import Glibc
import PrismProtocol

/// A blocking client of a Unix stream socket.
final class LineClient: Sendable {
  let descriptor: Int32

  init?(_ path: String) {
    descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let connected = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard connected == 0 else { return nil }
  }

  deinit { close(descriptor) }

  func send(_ text: String) {
    let bytes = Array(text.utf8)
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return }
      sent += count
    }
  }

  func endSending() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// The next line; nil at the end.
  func line() async -> JSONValue? {
    await onThread { [descriptor] in
      var (line, byte) = ([UInt8](), UInt8(0))
      while recv(descriptor, &byte, 1, 0) == 1 {
        if byte == 0x0A { return try? JSONValue(parsing: line) }
        line.append(byte)
      }
      return nil
    }
  }
}
