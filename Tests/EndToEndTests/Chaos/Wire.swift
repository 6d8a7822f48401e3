import Foundation
import Glibc
import Synchronization

/// One accepted connection, byte by byte. Blocks.
struct Wire: Sendable {
  struct Request: Sendable {
    var method = "", path = ""
    /// Names in lower case.
    var headers: [String: String] = [:]
    var body: [UInt8] = []
    var bodyBytes: Int { headers["content-length"].flatMap { Int($0) } ?? 0 }
  }

  let descriptor: Int32

  /// The head of the next request; nil when the other side closed before it was whole.
  func readHead() -> Request? {
    var head: [UInt8] = []
    var byte: UInt8 = 0
    while !head.suffix(4).elementsEqual([13, 10, 13, 10]) {
      guard recv(descriptor, &byte, 1, 0) == 1 else { return nil }
      head.append(byte)
    }
    let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
    var request = Request()
    let words = lines[0].split(separator: " ").map(String.init)
    (request.method, request.path) = (words[0], words[1])
    for line in lines.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1)
      request.headers[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces)
    }
    return request
  }

  /// Exactly as many bytes; nil when the other side closed before.
  func read(_ count: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    var got = 0
    while got < count {
      let more = bytes.withUnsafeMutableBytes { recv(descriptor, $0.baseAddress! + got, count - got, 0) }
      guard more > 0 else { return nil }
      got += more
    }
    return bytes
  }

  /// - Returns: false when the other side is gone.
  @discardableResult
  func send(_ text: String) -> Bool { send(Array(text.utf8)) }

  @discardableResult
  func send(_ bytes: [UInt8]) -> Bool {
    var sent = 0
    while sent < bytes.count {
      let count = bytes.withUnsafeBytes {
        Glibc.send(descriptor, $0.baseAddress! + sent, bytes.count - sent, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return false }
      sent += count
    }
    return true
  }

  /// The connection will end by RST instead of FIN.
  func reset() {
    var abrupt = linger(l_onoff: 1, l_linger: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &abrupt, socklen_t(MemoryLayout<linger>.size))
  }

  /// Says nothing until the other side gives up.
  func stall() {
    var bytes = [UInt8](repeating: 0, count: 4096)
    while recv(descriptor, &bytes, bytes.count, 0) > 0 {}
  }
}

/// A TCP server on loopback that does to each connection what a script says, on a thread of its own.
final class WireServer: Sendable {
  let port: UInt16
  private let listener: Int32
  private let open = Mutex<Set<Int32>>([])
  var url: String { "http://127.0.0.1:\(port)" }

  init(_ script: @escaping @Sendable (Wire) -> Void) {
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    port = Self.bindToLoopback(listener)
    listen(listener, 512)
    Thread.detachNewThread { [listener, weak self] in
      while true {
        let descriptor = accept(listener, nil, nil)
        if descriptor < 0 && (errno == ECONNABORTED || errno == EINTR) { continue }
        guard descriptor >= 0 else { break }
        self?.begin(descriptor, script)
      }
      close(listener)
    }
  }

  private func begin(_ descriptor: Int32, _ script: @escaping @Sendable (Wire) -> Void) {
    open.withLock { _ = $0.insert(descriptor) }
    Thread.detachNewThread {
      script(Wire(descriptor: descriptor))
      self.open.withLock {
        $0.remove(descriptor)
        close(descriptor)
      }
    }
  }

  /// The accepting thread closes the listener: here its number might be somebody else's before the thread sees it.
  func stop() {
    shutdown(listener, Int32(SHUT_RDWR))
    open.withLock { for descriptor in $0 { shutdown(descriptor, Int32(SHUT_RDWR)) } }
  }

  /// A socket that others may connect to on loopback once it listens. - Returns: its port.
  static func bindToLoopback(_ descriptor: Int32) -> UInt16 {
    precondition(withLoopback(port: 0) { bind(descriptor, $0, $1) == 0 }, "loopback can't be bound")
    var address = sockaddr_in()
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { _ = getsockname(descriptor, $0, &size) }
    }
    return UInt16(bigEndian: address.sin_port)
  }

  /// nil: no program listens there.
  static func connect(to port: UInt16) -> Wire? {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard withLoopback(port: port, { Glibc.connect(descriptor, $0, $1) == 0 }) else {
      close(descriptor)
      return nil
    }
    return Wire(descriptor: descriptor)
  }

  private static func withLoopback(port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Bool) -> Bool {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    address.sin_port = port.bigEndian
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
    }
  }
}
