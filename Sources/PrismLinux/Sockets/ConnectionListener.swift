/// A listening socket of a server, of any family.
protocol ConnectionListener: Sendable {
  /// Watched for reading by the server.
  var descriptor: Int32 { get }
  /// The address as the configuration has it.
  var path: String { get }
  /// Takes the next connection; `refuse` may write one short answer to a connection there is no descriptor for.
  func accept(refuse: (Int32) -> Void) -> UnixListener.Accepted
  /// Closes it; call it once, after its watch has ended.
  func close()
}

extension UnixListener: ConnectionListener {}
