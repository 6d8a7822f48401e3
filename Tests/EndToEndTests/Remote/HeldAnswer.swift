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
    let clients = held.withLock { clients in
      defer { clients = [] }
      return clients
    }
    let head = Array("HTTP/1.1 200 OK\r\nContent-Length: \(body.count)\r\nConnection: close\r\n\r\n".utf8)
    for client in clients {
      send(client, head + body, head.count + body.count, Int32(MSG_NOSIGNAL))
      close(client)
    }
  }

  func stop() { shutdown(listener, Int32(SHUT_RDWR)) }
}
