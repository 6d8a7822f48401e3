import Foundation
import Glibc
import Synchronization

/// A TCP server on loopback that does to each connection what a script says, byte by byte.
final class ScriptedServer: Sendable {
  typealias Script = @Sendable (Client) -> Void

  /// One accepted connection, as the script sees it. Blocks.
  struct Client: Sendable {
    let descriptor: Int32
    let number: Int
    let record: @Sendable (String) -> Void

    /// Reads a whole request and records it; nil when the other side closed before it was whole.
    @discardableResult
    func readRequest() -> String? {
      guard let head = read(until: { $0.range(of: "\r\n\r\n") != nil }) else { return nil }
      let length = head.lowercased().split(separator: "\r\n").compactMap { line -> Int? in
        line.hasPrefix("content-length:") ? Int(line.dropFirst(15).drop { $0 == " " }) : nil
      }.first
      let headBytes = head.utf8.count
      let needed = (head.range(of: "\r\n\r\n").map { $0 + 4 } ?? headBytes) + (length ?? 0)
      guard let rest = read(until: { headBytes + $0.utf8.count >= needed }) else { return nil }
      record(head + rest)
      return head + rest
    }

    func readHead() { _ = read { $0.range(of: "\r\n\r\n") != nil } }

    private func read(until isEnough: (String) -> Bool) -> String? {
      var text = ""
      var chunk = [UInt8](repeating: 0, count: 4096)
      while !isEnough(text) {
        let count = recv(descriptor, &chunk, chunk.count, 0)
        guard count > 0 else { return nil }
        text += String(decoding: chunk[..<count], as: UTF8.self)
      }
      return text
    }

    /// - Returns: false when the other side is gone.
    @discardableResult
    func send(_ text: String) -> Bool {
      let bytes = Array(text.utf8)
      return Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }

    /// Segments with data that the kernel took, `tcpi_data_segs_in` of linux/tcp.h. In the socket they are joined.
    var dataSegments: UInt32 {
      var info = [UInt32](repeating: 0, count: 39)
      var bytes = socklen_t(info.count * MemoryLayout<UInt32>.size)
      return getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, &info, &bytes) == 0 ? info[38] : 0
    }

    /// Ends the connection by RST instead of FIN.
    func reset() {
      var abrupt = linger(l_onoff: 1, l_linger: 0)
      setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &abrupt, socklen_t(MemoryLayout<linger>.size))
    }

    /// Blocks until the other side closes.
    func waitForClose() {
      var byte: UInt8 = 0
      while recv(descriptor, &byte, 1, 0) > 0 {}
    }
  }

  let port: UInt16
  private let listener: Int32
  private let seen = Seen()

  private final class Seen: Sendable {
    let requests = Mutex<[String]>([])
    let connections = Mutex(0)

    func nextNumber() -> Int {
      connections.withLock {
        $0 += 1
        return $0
      }
    }
  }

  var requests: [String] { seen.requests.withLock { $0 } }
  var connections: Int { seen.connections.withLock { $0 } }
  var url: String { "http://127.0.0.1:\(port)" }

  init(_ script: @escaping Script) {
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    port = Self.bindToLoopback(listener)
    listen(listener, 512)
    // Threads, not a queue: its pool would run out of them where scripts wait.
    Thread.detachNewThread { [listener, seen] in
      defer { close(listener) }
      while true {
        let descriptor = accept(listener, nil, nil)
        if descriptor < 0 && (errno == ECONNABORTED || errno == EINTR) { continue }
        guard descriptor >= 0 else { return }
        let number = seen.nextNumber()
        Thread.detachNewThread {
          let client = Client(descriptor: descriptor, number: number) { request in
            seen.requests.withLock { $0.append(request) }
          }
          script(client)
          close(descriptor)
        }
      }
    }
  }

  /// The accepting thread closes the descriptor: here its number might be somebody else's before the thread sees it.
  deinit { shutdown(listener, Int32(SHUT_RDWR)) }

  static func bindToLoopback(_ descriptor: Int32) -> UInt16 {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        precondition(bind(descriptor, $0, size) == 0, "loopback can't be bound")
        getsockname(descriptor, $0, &size)
      }
    }
    return UInt16(bigEndian: address.sin_port)
  }
}

extension String {
  /// Where `text` begins, in bytes.
  func range(of text: String) -> Int? {
    let (all, part) = (Array(utf8), Array(text.utf8))
    guard all.count >= part.count else { return nil }
    return (0...all.count - part.count).first { all[$0..<$0 + part.count].elementsEqual(part) }
  }
}
