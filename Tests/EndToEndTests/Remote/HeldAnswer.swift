import Foundation
import Glibc
import Synchronization

/// A server on loopback that takes one request after another and answers each only when a test says so.
final class HeldAnswer: Sendable {
  let port: UInt16
  private let listener: Int32
  private let held = Mutex<[Int32]>([])

  init() throws {
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let listener = listener
    let isBound = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listener, $0, size) == 0 && getsockname(listener, $0, &size) == 0 && listen(listener, 8) == 0
      }
    }
    guard isBound else { throw Failed("no port on loopback: errno \(errno)") }
    port = UInt16(bigEndian: address.sin_port)
    Thread.detachNewThread { [self] in
      while true {
        let client = accept(listener, nil, nil)
        guard client >= 0 else { return }
        held.withLock { $0.append(client) }
      }
    }
  }

  /// Requests that wait for their answer.
  var waiting: Int { held.withLock { $0.count } }

  func answer(_ body: [UInt8]) {
    reply { $0("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\nConnection: close\r\n\r\n".utf8) && $0(body) }
  }

  /// Sends bytes; answers false once the other side has closed.
  typealias Say = (any Collection<UInt8>) -> Bool

  /// Says to every request that waits what `script` says, and closes; on threads of their own, for scripts take their time.
  func reply(_ script: @escaping @Sendable (Say) -> Bool) {
    let clients = held.withLock { clients in
      defer { clients = [] }
      return clients
    }
    for client in clients { Thread.detachNewThread { Self.serve(client, script) } }
  }

  private static func serve(_ client: Int32, _ script: (Say) -> Bool) {
    // Bytes that are left unread would reset the connection, and take the answer with it.
    var request = [UInt8](repeating: 0, count: 16_384)
    recv(client, &request, request.count, 0)
    _ = script { send(Array($0), to: client) }
    close(client)
  }

  private static func send(_ bytes: [UInt8], to client: Int32) -> Bool {
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes {
        Glibc.send(client, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return false }
      sent += count
    }
    return true
  }

  func stop() { shutdown(listener, Int32(SHUT_RDWR)) }
}
