import Foundation
import Glibc
import PrismControl
import PrismProtocol

/// Takes a daemon's place on a control socket, and answers each request line with the result of `answer`.
final class HostileDaemon: Sendable {
  let path: String
  private let descriptor: Int32

  init(_ answer: @escaping @Sendable (ControlRequest) -> String) throws {
    path = NSTemporaryDirectory() + "/hostile-\(UUID().uuidString.prefix(8)).sock"
    descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let bound = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard bound == 0, listen(descriptor, 8) == 0 else { throw POSIXError(.EADDRINUSE) }
    let listener = descriptor
    Thread.detachNewThread {
      while case let connection = accept(listener, nil, nil), connection >= 0 {
        Thread.detachNewThread { Self.serve(connection, answer) }
      }
    }
  }

  deinit {
    shutdown(descriptor, Int32(SHUT_RDWR))
    close(descriptor)
    unlink(path)
  }

  private static func serve(_ connection: Int32, _ answer: (ControlRequest) -> String) {
    defer { close(connection) }
    var line: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      if let end = line.firstIndex(of: 0x0A) {
        guard let request = try? ControlRequest(parsing: Array(line[..<end])) else { return }
        line.removeFirst(end + 1)
        let bytes = Array((answer(request) + "\n").utf8)
        if send(connection, bytes, bytes.count, Int32(MSG_NOSIGNAL)) < 0 { return }
      }
      let count = read(connection, &chunk, chunk.count)
      guard count > 0 else { return }
      line += chunk[..<count]
    }
  }
}
