/// The decision about a request whose head has been read, before its body.
public enum HTTPAdmission: Sendable {
  /// Read the body, then call the handler.
  /// - Parameter isProven: the head proves its sender, so its connection and its body do not give way to others.
  case take(isProven: Bool = false)
  /// The handler is not called. A body that is short is skipped, and the connection goes on. Otherwise the answer goes out at
  /// once, and the connection is closed.
  case refuse(HTTPResponse)
}
