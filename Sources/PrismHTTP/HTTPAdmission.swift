/// The decision about a request whose head has been read, before its body.
public enum HTTPAdmission: Sendable {
  /// Read the body, then call the handler. `permit` lives until the request is answered or its connection is gone. Its
  /// `deinit` returns what it represents: a share of memory, a place in a queue.
  case take(permit: (any AnyObject & Sendable)? = nil)
  /// The handler is not called; the body is skipped as far as that is cheap.
  case refuse(HTTPResponse)
}
