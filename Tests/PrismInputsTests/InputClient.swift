import Dispatch
import Glibc
import PrismBase

/// A program's end of a connection. Its blocking calls run on a queue of their own.
final class InputClient: Sendable {
  enum Place {
    case unix(String)
    case tcp(UInt16)
  }

  struct Failure: Error { let code: Int32 }

  let descriptor: Int32
  private let queue = DispatchQueue(label: "prism.test.input")

  init(_ place: Place) throws {
    let connected: Int32
    switch place {
    case .unix(let path):
      descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
      guard let address = UnixAddress(path: path) else { throw Failure(code: EINVAL) }
      connected = address.withPointer { [descriptor] in connect(descriptor, $0, $1) }
    case .tcp(let port):
      descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = port.bigEndian
      address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
      connected = withUnsafePointer(to: &address) { [descriptor] pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
    }
    guard connected == 0 else { throw Failure(code: errno) }
    var patience = timeval(tv_sec: 240, tv_usec: 0)  // a test that hangs must fail
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
  }

  deinit { close(descriptor) }

  /// Its kernel acknowledges what came over TCP, and does not wait for more.
  func acknowledge() {
    var now: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_QUICKACK, &now, socklen_t(MemoryLayout<Int32>.size))
  }

  func finishSending() { shutdown(descriptor, Int32(SHUT_WR)) }

  func send(_ bytes: [UInt8], piece size: Int = .max) async throws {
    try await run { [descriptor] in
      var rest = bytes[...]
      while !rest.isEmpty {
        let count = rest.prefix(size).withUnsafeBytes {
          Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
        }
        guard count > 0 else { throw Failure(code: errno) }
        rest = rest.dropFirst(count)
      }
    }
  }

  /// Exactly `count` bytes; fewer where the server ends before.
  func bytes(_ count: Int) async throws -> [UInt8] {
    try await run { [descriptor] in
      var result: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: 65_536)
      while result.count < count {
        let got = recv(descriptor, &buffer, min(buffer.count, count - result.count), 0)
        guard got >= 0 else { throw Failure(code: errno) }
        if got == 0 { break }
        result += buffer[..<got]
      }
      return result
    }
  }

  /// Everything up to the end of the connection.
  func rest() async throws -> [UInt8] { try await bytes(.max) }

  private func run<Result: Sendable>(_ body: @escaping @Sendable () throws -> Result) async throws -> Result {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { continuation.resume(with: Swift.Result { try body() }) }
    }
  }
}
