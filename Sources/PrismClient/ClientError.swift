public import PrismProtocol

/// Why a client could not have its reports answered.
public enum ClientError: Error, Equatable, Sendable, CustomStringConvertible {
  /// No program listens on the socket.
  case unreachable(socket: String, errno: Int32)
  /// The daemon went away. `mayBeStored`: a report without an id was sent and its answer is missing.
  case connectionLost(socket: String, mayBeStored: Bool)
  /// No answer came in time.
  case timedOut(socket: String)
  /// The daemon takes no reports over this connection: it has too many (`busy`), or the greeting is invalid.
  case refused(socket: String, Refusal)
  case protocolViolation(String)

  public var description: String {
    switch self {
    case .unreachable(let socket, let code):
      "\(socket): no program answers (errno \(code)); is prismd running, and may you open the socket? See `systemctl status prismd`"
    case .connectionLost(let socket, let mayBeStored):
      "\(socket): the daemon closed the connection"
        + (mayBeStored ? "; whether the last reports were stored is open: give them ids to send them again safely" : "")
    case .timedOut(let socket): "\(socket): no answer in time; `prismctl status` shows whether the daemon is behind"
    case .refused(let socket, let refusal):
      "\(socket): the connection is refused: \(refusal.code.rawValue): \(refusal.message)"
    case .protocolViolation(let what): "the daemon's answer is not of this protocol: \(what)"
    }
  }
}
