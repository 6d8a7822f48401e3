public import Glibc

/// The address of a Unix socket in the file system.
public struct UnixAddress: Sendable {
  /// The path; an abstract name begins with `@`.
  public let path: String
  private let address: sockaddr_un
  private let size: socklen_t

  /// The bytes that `sun_path` holds, its closing zero left out (unix(7)).
  public static let pathBytesMax = 107

  /// nil for a path that is empty, has a zero byte in it, or is longer than `pathBytesMax`.
  public init?(path: String) {
    guard (1...Self.pathBytesMax).contains(path.utf8.count), !path.utf8.contains(0) else { return nil }
    self.init(path: path, name: Array(path.utf8), closingZero: 1)
  }

  /// In Linux's abstract name space, where names have no file: `@name` as sd_notify(3) writes it. nil for a name that is empty
  /// or too long.
  public init?(abstract name: String) {
    guard (1...Self.pathBytesMax).contains(name.utf8.count) else { return nil }
    self.init(path: "@" + name, name: [0] + Array(name.utf8), closingZero: 0)
  }

  private init(path: String, name: [UInt8], closingZero: Int) {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
    let head = MemoryLayout<sockaddr_un>.offset(of: \.sun_path) ?? 2
    (self.path, self.address, size) = (path, address, socklen_t(head + name.count + closingZero))
  }

  /// Lets `body` pass the address to bind(2) or connect(2).
  public func withPointer<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
    withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, size) }
    }
  }

  /// The path that a socket is bound to; nil if it isn't bound to a file.
  public static func localPath(of descriptor: Int32) -> String? {
    var address = sockaddr_un()
    var size = socklen_t(MemoryLayout<sockaddr_un>.size)
    let failed = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &size) }
    }
    guard failed == 0 else { return nil }
    let path = withUnsafeBytes(of: address.sun_path) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    return path.isEmpty ? nil : path
  }

  /// A new stream socket that is connected to this address, or -1 with `errno`. It blocks.
  public func connect() -> Int32 {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return -1 }
    guard withPointer({ Glibc.connect(descriptor, $0, $1) }) == 0 else {
      let code = errno
      close(descriptor)
      errno = code
      return -1
    }
    return descriptor
  }
}
