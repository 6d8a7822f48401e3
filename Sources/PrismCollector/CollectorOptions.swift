public import PrismBase
public import PrismConfig
public import PrismHTTP
public import PrismPacket
public import PrismProtocol

/// How a collector is started.
public struct CollectorOptions: Sendable {
  /// `ADDRESS:PORT`; port 0 takes any that is free.
  public var listen = "127.0.0.1:8480"
  /// The folder of the database; it exists.
  public var state: String
  /// Where packets and reports rest; nil: in SQLite, in `state`.
  public var store: PostgreSQLTarget?
  /// With `store`: from the start of a group of packets to its commit; a commit that is not confirmed by then is 503.
  public var commitDeadline: Duration = .seconds(10)
  /// By id.
  public var keys: [String: Secret]
  /// By id; of keys that are not for all devices and namespaces alike.
  public var keyRules: [String: KeyRule] = [:]
  /// They open payloads that devices sealed to them; without one such a payload is stored sealed.
  public var sealKeys: [SealingPrivateKey] = []
  /// How much devices may send.
  public var deviceLimits = DeviceLimits()
  /// Devices are enrolled over plain HTTP, too: a balancer in front ends TLS.
  public var allowsPlainEnrollment = false
  /// A file of bearer tokens, one a line, of which every sender must give one; nil: no token is needed.
  public var tokenFile: String?
  /// Where holders of a reader's token read, `ADDRESS:PORT`.
  public var readerListen = "127.0.0.1:8081"
  /// A file of bearer tokens of readers; nil: no reader has one. Without any token, and
  /// without `servesLocalReaders`, reports are read over the Unix socket `reader.sock` in `state` only.
  public var readerTokenFile: String?
  /// A file of bearer tokens of operators, who read and change.
  public var operatorTokenFile: String?
  /// Without tokens of readers and operators: the reader's address is served to this machine. It must be a loopback address.
  public var servesLocalReaders = false
  /// Readers of this machine are operators: for trying.
  public var isTrial = false
  /// Names under which the reader's address is asked, beside `localhost` and addresses in numbers.
  public var readerHosts: [String] = []
  /// Reports are deleted after as many days (with SQLite: on which the collector ran); nil: they are kept.
  public var retentionDays: Int?
  /// Where reports are handed on to.
  public var outputs: [OutputSettings] = []
  /// Receivers of notices.
  public var notices: [CollectorConfiguration.Notice] = []
  /// Reports past `retentionDays` that an output has not taken stay; with more bytes `onLag` decides.
  public var outputLagBytes = 10_240 * 1_048_576
  /// The rule for more than `outputLagBytes`.
  public var onLag = LagPolicy.hold
  /// nil: plain HTTP.
  public var tls: HTTPServerTLS?
  /// Takes each new report as one line of JSON.
  public var print: (@Sendable (String) -> Void)?
  /// nil: remote configuration is not served.
  public var remote: Remote?
  /// Of senders, at a time.
  public var connectionsMax = 10_000
  /// Proxies whose `X-Forwarded-For` is believed.
  public var trustedProxies: [NetworkRange] = []
  /// A packet's body.
  public var bodyBytesMax = 8 * 1_048_576
  /// Of all packets, from their decryption until they are stored; also the most that one packet may take.
  public var memoryBytesMax = 64 * 1_048_576

  /// Of debug files.
  package var symbolFolder: SymbolFolder { SymbolFolder(FilePath.joined(state, "symbols")) }

  /// The remote configuration that `GET /prism/config` serves.
  public struct Remote: Sendable {
    /// Of namespace files.
    let folder: String
    /// Signs the answers; nil: they are not signed.
    let key: SigningKey?

    /// - Parameter signingKey: PEM, as `openssl genpkey -algorithm ed25519` writes it.
    /// - Returns: nil where that is no such key.
    public init?(folder: String, signingKey: Secret? = nil) {
      self.folder = folder
      key = signingKey.flatMap { SigningKey(pem: $0.bytes) }
      if signingKey != nil && key == nil { return nil }
    }
  }

  /// The defaults, with what has no default.
  public init(state: String, keys: [String: Secret]) { (self.state, self.keys) = (state, keys) }
}
