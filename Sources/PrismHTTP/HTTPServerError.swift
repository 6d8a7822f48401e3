import Glibc

/// Why a server does not come up.
public enum HTTPServerError: Error, Equatable, CustomStringConvertible {
  case badAddress(String)
  case cannotListen(address: String, errno: Int32)
  /// libmicrohttpd gives no reason; with TLS it nearly always is the identity.
  case cannotStart(withTLS: Bool)

  public var description: String {
    switch self {
    case .badAddress(let text):
      "\(text): is not an address to listen on; write ADDRESS:PORT, [ADDRESS]:PORT for IPv6, port 0 for any"
    case .cannotListen(let address, EADDRINUSE):
      "\(address): another program listens there; stop it, or choose another port"
    case .cannotListen(let address, EACCES):
      "\(address): not permitted; ports below 1024 need CAP_NET_BIND_SERVICE"
    case .cannotListen(let address, EADDRNOTAVAIL):
      "\(address): this machine has no such address"
    case .cannotListen(let address, let code):
      "\(address): cannot listen: \(String(cString: strerror(code)))"
    case .cannotStart(withTLS: true):
      "the HTTPS server does not start: check that certificate and key are PEM files and belong together"
    case .cannotStart(withTLS: false):
      "the HTTP server does not start: out of memory, threads or file descriptors"
    }
  }
}
