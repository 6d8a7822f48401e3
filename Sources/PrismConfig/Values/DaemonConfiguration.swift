public import PrismProtocol

/// What the daemon itself is told: the table "The daemon" of docs/configuration.md, in base units.
public struct DaemonConfiguration: Sendable, Equatable {
  public enum Durability: String, Sendable, CaseIterable { case full, normal }
  public enum LogLevel: String, Sendable, CaseIterable { case debug, info, warning, error }
  public enum LogFormat: String, Sendable, CaseIterable { case text, json }

  public var ingest = Ingest()
  public var control = Control()
  /// The folder of the database and the cached remote configuration.
  public var state = "/var/lib/prism"
  public var durability = Durability.full
  /// Namespaces may send over plain http to other machines.
  public var allowPlain = false
  public var limits = Ceilings()
  /// nil: `auto`, derived from the machine id.
  public var deviceId: String?
  /// Fixed common information.
  public var common: [String: String] = [:]
  /// In the order of the file; the first is the default of `keyId`.
  public var keys: [Key] = []
  public var network = Network()
  public var remote: Remote?
  /// `ADDRESS:PORT`; nil: not served.
  public var metricsListen: String?
  public var logLevel = LogLevel.info
  public var logFormat = LogFormat.text

  public struct Ingest: Sendable, Equatable {
    public var socket = "/run/prism/ingest.sock"
    public var mode: UInt32 = 0o666
    /// nil: the daemon's own.
    public var group: String?
    public var maxConnections = 4096
    public var maxConnectionsPerUser = 1024
    /// What clients may make the daemon hold in memory.
    public var memoryBytes = 32 * 1_048_576
    public init() {}
  }

  public struct Control: Sendable, Equatable {
    public var socket = "/run/prism/control.sock"
    /// Whose members may do everything.
    public var group: String?
    /// Whose members may ask for what changes nothing.
    public var readers: String?
    public init() {}
  }

  /// What the operator lets a namespace set; remote configuration stays within it.
  public struct Ceilings: Sendable, Equatable {
    public var maxBodyMByte = 3, periodicTimerSecond = 30, maxItem = 100, maxFlowMByte = 100, expirationDay = 30
    public init() {}
  }

  /// A key file, read and checked when the configuration was.
  public struct Key: Sendable, Equatable {
    public var id: String
    /// The path that was found: absolute, or below `$CREDENTIALS_DIRECTORY` or the config's folder.
    public var file: String
    public var secret: Secret
    public init(id: String, file: String, secret: Secret) { (self.id, self.file, self.secret) = (id, file, secret) }
  }

  public enum NetworkClass: String, Sendable, CaseIterable { case metered, unmetered, ignored }

  public struct Network: Sendable, Equatable {
    /// What an interface of unknown kind counts as: `metered` or `unmetered`.
    public var fallback = NetworkClass.unmetered
    /// Globs in the order of the file; the first that matches counts.
    public var interfaces: [InterfaceRule] = []
    public init() {}
  }

  public struct InterfaceRule: Sendable, Equatable {
    public var glob: String
    public var counts: NetworkClass
    public init(glob: String, counts: NetworkClass) { (self.glob, self.counts) = (glob, counts) }
  }

  public struct Remote: Sendable, Equatable {
    public var url: String
    public var interval: Duration = .seconds(600)
    /// The namespace keys that remote configuration may set.
    public var allow: Set<String>
    /// Ed25519, 32 bytes; nil: answers need no signature.
    public var publicKey: [UInt8]?
    /// A bearer token.
    public var token: HeldFile?
    public var tls = NamespaceConfiguration.TLS()
    public init(url: String, allow: Set<String>) { (self.url, self.allow) = (url, allow) }
  }

  public init() {}
}
