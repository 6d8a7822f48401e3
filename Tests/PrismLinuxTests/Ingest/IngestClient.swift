import Dispatch
import Glibc
import PrismProtocol

/// A client's end of the ingest socket. Its blocking calls run on a queue of their own.
final class IngestClient: Sendable {
  let descriptor: Int32
  /// Two, so that one may send while another reads; serial ones, because each of those gets a thread at once.
  private let sending = DispatchQueue(label: "prism.test.client.send")
  private let receiving = DispatchQueue(label: "prism.test.client.receive")

  init(_ path: String, isBlocking: Bool = true) throws {
    descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
    let connected = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
    guard connected == 0 else { throw Failure(code: errno) }
    var patience = timeval(tv_sec: 240, tv_usec: 0)  // a test that hangs must fail
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    if !isBlocking { _ = fcntl(descriptor, F_SETFL, O_NONBLOCK) }
  }

  deinit { close(descriptor) }

  struct Failure: Error { let code: Int32 }

  /// Sends everything, in pieces of at most `size`.
  func send(_ text: String, piece size: Int = .max) async throws { try await send(Array(text.utf8), piece: size) }

  func send(_ bytes: [UInt8], piece size: Int = .max) async throws {
    try await on(sending) { [descriptor] in
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

  /// How much goes in without blocking, in pieces of `bytes`; for a non-blocking client.
  func sendUntilFull(_ bytes: [UInt8], max: Int) -> Int {
    var total = 0
    while total < max {
      let count = bytes.withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { break }
      total += count
    }
    return total
  }

  /// The server closed the connection and all that it sent is read.
  var isEnded: Bool {
    var byte: UInt8 = 0
    return recv(descriptor, &byte, 1, Int32(MSG_PEEK) | Int32(MSG_DONTWAIT)) == 0
  }

  func finishSending() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// As many lines; fewer where the server ends before.
  func lines(_ count: Int) async throws -> [JSONValue] {
    try await on(receiving) { [descriptor] in
      var (result, line): ([JSONValue], [UInt8]) = ([], [])
      var byte: UInt8 = 0
      while result.count < count {
        let got = recv(descriptor, &byte, 1, 0)
        guard got >= 0 else { throw Failure(code: errno) }
        if got == 0 { break }
        if byte == 0x0A {
          result.append(try JSONValue(parsing: line))
          line = []
        } else {
          line.append(byte)
        }
      }
      return result
    }
  }

  /// Everything up to the end of the connection.
  func rest() async throws -> String {
    try await on(receiving) { [descriptor] in
      var result: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: 65_536)
      while true {
        let count = recv(descriptor, &buffer, buffer.count, 0)
        guard count >= 0 else { throw Failure(code: errno) }
        if count == 0 { return String(decoding: result, as: UTF8.self) }
        result += buffer[..<count]
      }
    }
  }

  private func on<Result: Sendable>(_ queue: DispatchQueue, _ body: @escaping @Sendable () throws -> Result)
    async throws -> Result
  {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { continuation.resume(with: Swift.Result { try body() }) }
    }
  }
}
