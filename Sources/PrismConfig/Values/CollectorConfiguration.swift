public import PrismBase
public import PrismProtocol

/// The configuration of a collector: the table of docs/collector-reference.md, in base units.
public struct CollectorConfiguration: Sendable, Equatable {
  /// The rule for reports past `retentionDay` that outputs have not taken, once they have more than `outputLagMByte`.
  public enum LagPolicy: String, Sendable, CaseIterable {
    /// They stay, without a limit.
    case hold
    /// The oldest are deleted, and counted.
    case skip
    /// New packets get 503 until the outputs took enough.
    case refuse
  }

  /// `ADDRESS:PORT` where packets are taken; port 0 takes any that is free.
  public var listen = "127.0.0.1:8480"
  /// The folder of the database; nil: it was not given, which is a fault in the end.
  public var state: String?
  /// A connection URI of PostgreSQL; nil: SQLite in `state`.
  public var store: String?
  /// A file of passwords for `store`.
  public var storePasswordFile: HeldFile?
  /// 1 to 600 s.
  public var commitDeadline: Duration = .seconds(10)
  /// The packets' keys, in their order.
  public var keys: [DaemonConfiguration.Key] = []
  /// Private keys (PEM) to which payloads are sealed.
  public var sealKeys: [HeldFile] = []
  /// The senders' bearer tokens; of this and the next two only the path is held.
  public var tokenFile: HeldFile?
  /// The readers' bearer tokens.
  public var readerTokenFile: HeldFile?
  /// Bearer tokens of those who read and change.
  public var operatorTokenFile: HeldFile?
  /// `reader`: where reports are read.
  public var reader = Reader()
  /// `assertion`: a proxy says who reads.
  public var assertion = Assertion()
  /// nil: reports are kept.
  public var retentionDays: Int?
  /// `retention`: shorter times, in their order. A report goes by the first that means it.
  public var retention: [RetentionRule] = []
  /// Of packets from their decryption until they are stored.
  public var memoryBytes = 64 * 1_048_576
  /// How much devices may send.
  public var limits = Limits()
  /// `enroll.allowPlain`.
  public var allowsPlainEnrollment = false
  /// In their order.
  public var outputs: [Output] = []
  /// How far outputs may be behind before `onLag` decides.
  public var outputLagBytes = 10_240 * 1_048_576
  /// `onLag`.
  public var onLag = LagPolicy.hold
  /// The server that debug files are asked of; nil: they are added by hand.
  public var debuginfod: String?
  /// Receivers of notices, in their order.
  public var notices: [Notice] = []
  /// Of senders, at a time.
  public var connectionsMax = 10_000
  /// `proxy.trusted`.
  public var trustedProxies: [NetworkRange] = []
  /// A folder of namespace files that are served.
  public var remoteConfig: String?
  /// Signs them, PEM.
  public var signingKey: HeldFile?
  /// `tls`; without a certificate plain HTTP is served.
  public var tls = TLS()

  /// The defaults.
  public init() {}

  /// The keys under `reader`.
  public struct Reader: Sendable, Equatable {
    /// `ADDRESS:PORT`; nil: the default, for those with a token.
    public var listen: String?
    /// Names of that address beside its own.
    public var hosts: [String] = []
    /// The collector notes its readers and their changes.
    public var audit = false
  }

  /// A header in which a proxy says who reads, as a JSON Web Token that it signed.
  public struct Assertion: Sendable, Equatable {
    /// nil: no proxy says so.
    public var header: String?
    /// A JSON Web Key Set; only the path is held.
    public var keys: HeldFile?
    /// It must be meant for it.
    public var audience: String?
    /// nil: any whose keys these are.
    public var issuer: String?
    /// The claim that names the reader.
    public var claim = "sub"
  }

  /// Of namespaces, of devices, and of all of these together; nil: any number. Each replica counts packets for itself, since its start.
  public struct Limits: Sendable, Equatable {
    /// `quotas`, in their order. A namespace goes by the first that means it.
    public var quotas: [Quota] = []
    /// Of one device, with bursts of as many.
    public var devicePacketsPerMinute: Int?
    /// Of one device, at all replicas.
    public var deviceRowsPerDay = 1_000_000
    /// Of what one device's packets unpack to, at all replicas.
    public var deviceBytesPerDay = 1024 * 1_048_576
    /// Of all devices, with bursts of as many.
    public var packetsPerMinute: Int?
    /// Devices that are let in a second after a start.
    public var startDevicesPerSecond = 500

    /// The defaults.
    public init() {}
  }

  /// One entry of `outputs`.
  public struct Output: Sendable, Equatable {
    /// The place where reports go, with what belongs to it.
    public enum Target: Sendable, Equatable {
      /// nil: standard output.
      case ndjson(folder: String?, compresses: Bool, bytesMax: Int, age: Duration)
      case otlp(url: String, headers: [String], encoding: Encoding, timeout: Duration)
      case kafka(brokers: String, topic: String, propertiesFile: String?, timeout: Duration)
      case clickHouse(url: String, database: String, user: String?, passwordFile: String?, timeout: Duration)
      case postgreSQL(uri: String, schema: String, passwordFile: String?, timeout: Duration)
    }

    /// The form of a request of OTLP/HTTP.
    public enum Encoding: String, Sendable, CaseIterable { case protobuf, json }

    /// Where it came to is noted under this name.
    public var name: String
    /// Where reports go.
    public var target: Target
  }

  /// One entry of `retention`: how long reports of some namespaces and types are kept.
  public struct RetentionRule: Sendable, Equatable {
    /// The most of a list.
    static let countMax = 64

    /// Of namespaces; `*` is any text, `?` any character.
    public var namespace = "*"
    /// The same of types.
    public var type = "*"
    /// 1 to 36,500; they count as those of `retentionDay`.
    public var days = 0

    /// - Parameter days: 0: it is a rule without days yet.
    public init(namespace: String = "*", type: String = "*", days: Int = 0) {
      (self.namespace, self.type, self.days) = (namespace, type, days)
    }

    /// Whether a report of them goes by this rule, if by no earlier one.
    public func means(namespace: String, type: String) -> Bool {
      Glob.matches(self.namespace, namespace) && Glob.matches(self.type, type)
    }
  }

  /// One entry of `quotas`: the reports that each of some namespaces may have at rest.
  public struct Quota: Sendable, Equatable {
    /// Of namespaces; `*` is any text, `?` any character.
    public var namespace = ""
    /// 1 to 1,000,000,000,000.
    public var rowsMax = 0
    /// - Parameter rowsMax: 0: it is a quota without rows yet.
    public init(namespace: String = "", rowsMax: Int = 0) { (self.namespace, self.rowsMax) = (namespace, rowsMax) }
  }

  /// One entry of `notices`: a receiver and its events.
  public struct Notice: Sendable, Equatable {
    /// The form of a request.
    public enum Form: String, Sendable, CaseIterable { case json, slack, alertmanager }

    /// The reason of a notice.
    public enum Event: String, Sendable, CaseIterable {
      case newGroup, regressedGroup, silentDevice, count
    }

    /// In the list of notices.
    public var name = ""
    /// Where notices are posted.
    public var url = ""
    /// By default a form of its own.
    public var form = Form.json
    /// nil: requests are not signed.
    public var secret: HeldFile?
    /// By default groups of crashes.
    public var events: [Event] = [.newGroup, .regressedGroup]
    /// Without a packet, 1 to 168.
    public var silentHours = 24
    /// Of the reports that are counted.
    public var countType = "appCrash"
    /// 1 to 1,000,000,000.
    public var countOver = 100
    /// 1 to 1440.
    public var countMinutes = 60
  }

  /// The keys under `tls`.
  public struct TLS: Sendable, Equatable {
    /// The certificate and its chain, PEM.
    public var certFile: HeldFile?
    /// Its key, PEM.
    public var keyFile: HeldFile?
    /// The authorities of clients, PEM.
    public var clientCAFile: HeldFile?
  }
}
