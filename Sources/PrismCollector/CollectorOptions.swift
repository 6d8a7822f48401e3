public import PrismHTTP
public import PrismProtocol

/// How a collector is started.
public struct CollectorOptions: Sendable {
  /// `ADDRESS:PORT`; port 0 takes any that is free.
  public var listen = "127.0.0.1:8080"
  /// The folder of the database; it exists.
  public var state: String
  /// By id.
  public var keys: [String: Secret]
  /// A file of bearer tokens, one a line, of which every sender must give one; nil: none is asked for.
  public var tokenFile: String?
  /// nil: plain HTTP.
  public var tls: HTTPServerTLS?
  /// Takes each new report as one line of JSON.
  public var print: (@Sendable (String) -> Void)?
  /// A packet's body.
  public var bodyBytesMax = 8 * 1_048_576

  public init(state: String, keys: [String: Secret]) { (self.state, self.keys) = (state, keys) }
}
