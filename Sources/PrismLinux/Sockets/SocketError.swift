import Glibc

/// Why a socket cannot be listened on, and what to do.
public enum SocketError: Error, Equatable, Sendable, CustomStringConvertible {
  case inUse(path: String)
  case notASocket(path: String)
  case pathUnusable(path: String, bytesMax: Int)
  case unknownGroup(String, path: String)
  case notListening(descriptor: Int32)
  case system(_ what: String, path: String, errno: Int32)

  public var description: String {
    switch self {
    case .inUse(let address) where !address.contains("/"):
      "\(address): another program listens there (`ss -lntup` names it); stop it, or set another address"
    case .inUse(let path):
      "\(path): somebody listens there already; is another prismd running? Stop it, or set another path"
    case .notASocket(let path): "\(path): is there and is not a socket; remove it, or set another path"
    case .pathUnusable(let path, let bytesMax):
      "\(path): not usable as a socket's path: \(path.utf8.count) bytes, allowed are 1 to \(bytesMax) without a zero byte"
    case .unknownGroup(let name, let path): "\(path): there is no group \(name); create it, or name another"
    case .notListening(let descriptor):
      "descriptor \(descriptor), passed by the service manager, is not a listening Unix stream socket; check the .socket unit"
    case .system(let what, let path, let code):
      "\(path): cannot \(what): \(String(cString: strerror(code)))\(hint(code))"
    }
  }

  private func hint(_ code: Int32) -> String {
    switch code {
    case ENOENT, ENOTDIR: "; create its folder (systemd: RuntimeDirectory=)"
    case EACCES, EPERM, EROFS: "; let the daemon's user write to its folder"
    default: ""
    }
  }

  /// The exit code of the program (prismd(8), "EXIT STATUS").
  public var exitCode: ExitCode {
    switch self {
    case .inUse: .unavailable
    case .pathUnusable, .unknownGroup: .configuration
    case .notASocket, .notListening, .system: .cannotCreate
    }
  }
}
