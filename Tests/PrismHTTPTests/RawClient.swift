import Foundation
import Glibc

/// A TCP client that sends the given bytes and nothing else. Its blocking calls run on a thread of their own.
final class RawClient: Sendable {
  private let descriptor: Int32

  /// nil: no server listens there.
  init?(port: UInt16) {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    address.sin_port = port.bigEndian
    var patience = timeval(tv_sec: 240, tv_usec: 0)  // a test that hangs must fail
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    let isConnected = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
      }
    }
    if !isConnected { return nil }
  }

  deinit { close(descriptor) }

  /// - Returns: false when the server is gone.
  @discardableResult
  func send(_ text: String) -> Bool {
    let bytes = Array(text.utf8)
    return Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
  }

  /// The bytes that come until `isEnough`, or until the server closes.
  func receive(until isEnough: @escaping @Sendable (String) -> Bool = { _ in false }) async -> String {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread { [descriptor] in
        var (text, chunk) = ("", [UInt8](repeating: 0, count: 4096))
        while !isEnough(text) {
          let count = recv(descriptor, &chunk, chunk.count, 0)
          guard count > 0 else { break }
          text += String(decoding: chunk[..<count], as: UTF8.self)
        }
        continuation.resume(returning: text)
      }
    }
  }

  /// Reads until there are more than `count` answers.
  func answers(_ count: Int) async -> String { await receive { $0.components(separatedBy: "(end)").count > count } }
}
