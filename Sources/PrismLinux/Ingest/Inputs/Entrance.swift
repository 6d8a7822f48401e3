import CLinux
import PrismConfig

/// The purpose of a listening socket.
enum Entrance: Hashable {
  /// The ingest socket: lines or HTTP.
  case reports
  /// OTLP over HTTP, on TCP.
  case otlp
  /// Fluent's forward protocol.
  case forwardSocket, forwardTCP

  var isTCP: Bool { self == .otlp || self == .forwardTCP }
  var isForward: Bool { self == .forwardSocket || self == .forwardTCP }

  /// The key of its address.
  var key: String {
    switch self {
    case .reports: "ingest.socket"
    case .otlp: "otlp.listen"
    case .forwardSocket: "forward.socket"
    case .forwardTCP: "forward.listen"
    }
  }

  /// The addresses that a configuration opens, beside the ingest socket.
  static func addresses(_ daemon: DaemonConfiguration) -> [Entrance: String] {
    var result: [Entrance: String] = [:]
    result[.otlp] = daemon.otlp.listen
    result[.forwardSocket] = daemon.forward.socket
    result[.forwardTCP] = daemon.forward.listen
    return result
  }

  /// - Parameter daemon: says whose the file of a Unix socket is.
  func listen(on address: String, _ daemon: DaemonConfiguration) throws(SocketError) -> any ConnectionListener {
    if isTCP { return try TCPListener(address: address) }
    return try UnixListener(path: address, mode: daemon.ingest.mode, group: daemon.ingest.group)
  }

  /// The user at the other end of a connection, as the kernel says; nil: it is gone.
  func userID(of descriptor: Int32) -> UInt32? {
    guard isTCP else { return PeerCredentials(of: descriptor)?.userID }
    var userID: UInt32 = 0
    return prism_tcp_peer_user(descriptor, &userID) == 0 ? userID : nil
  }
}

/// An entrance that is open.
struct OpenEntrance {
  /// In the loop.
  let id: Int
  let entrance: Entrance
  let listener: any ConnectionListener
  var watch: SocketLoop.Watch

  func close() {
    watch.end()
    listener.close()
  }
}

/// An address that can't be listened on, with the key that names it.
public struct EntranceFault: Error, Sendable {
  /// `otlp.listen`.
  public let key: String
  /// Why not, and what to do.
  public let reason: SocketError
}
