public import PrismBase
public import PrismProtocol

/// The configuration of the daemon itself: the table "The daemon" of docs/configuration.md, in base units.
public struct DaemonConfiguration: Sendable, Equatable {
  /// `full`: answers after the sync; `normal`: after the commit.
  public enum Durability: String, Sendable, CaseIterable { case full, normal }

  /// `ingest`: the socket for programs.
  public var ingest = Ingest()
  /// `control`: the socket for prismctl.
  public var control = Control()
  /// The folder of the database and the cached remote configuration.
  public var state = "/var/lib/prism"
  /// The folder for reports that are kept in memory (`keep: memory`).
  public var memory = "/run/prism/memory"
  /// The meaning of `stored`; default `full`.
  public var durability = Durability.full
  /// Namespaces may send over plain http to other machines.
  public var allowPlain = false
  /// `limits`: the upper ends for namespaces.
  public var limits = Ceilings()
  /// nil: `auto`, derived from the machine id.
  public var deviceId: String?
  /// `device.tags`; nil: the device says nothing of its tags.
  public var deviceTags: DeviceTags?
  /// Fixed common information.
  public var common: [String: String] = [:]
  /// In the order of the file; the first is the default of `keyId`.
  public var keys: [Key] = []
  /// `network`: the kinds of interfaces.
  public var network = Network()
  /// `remote`; nil without `remote.url`.
  public var remote: Remote? {
    get { remoteKeys?.url.isEmpty == false ? remoteKeys : nil }
    set { remoteKeys = newValue }
  }
  /// The keys under `remote`, also without its `url`: commands are signed by its `publicKey`. nil: all have their defaults.
  var remoteKeys: Remote?
  /// `otlp`: reports of OpenTelemetry.
  public var otlp = OTLP()
  /// `forward`: reports of Fluent.
  public var forward = Forward()
  /// `statsd`: samples.
  public var statsd = Messages(namespace: "metrics")
  /// `syslog`: messages.
  public var syslog = Messages(namespace: "logs")
  /// `crashSpool`: reports that programs leave in a folder.
  public var crashSpool = CrashSpool()
  /// `host`: reports of the machine itself.
  public var host = Host()
  /// `journal`: entries of systemd's journal.
  public var journal = Journal()
  /// `commands`: what a server may make this device do.
  public var commands = Commands()
  /// `ADDRESS:PORT`; nil: not served.
  public var metricsListen: String?
  /// `log.level`, default `info`.
  public var logLevel = Logger.Level.info
  /// `log.format`, default `text`.
  public var logFormat = Logger.Format.text

  /// The keys under `ingest`.
  public struct Ingest: Sendable, Equatable {
    /// The path of the socket, at most 107 bytes.
    public var socket = "/run/prism/ingest.sock"
    /// The mode of the socket, 0600 to 0777.
    public var mode: UInt32 = 0o666
    /// nil: the daemon's own.
    public var group: String?
    /// The most connections, 1 to 65,536.
    public var maxConnections = 4096
    /// The most connections of one user, 1 to 65,536.
    public var maxConnectionsPerUser = 1024
    /// The memory that all clients together may use.
    public var memoryBytes = 32 * 1_048_576
  }

  /// The keys under `otlp`.
  public struct OTLP: Sendable, Equatable {
    /// The namespace if the configuration names no other.
    public static let namespaceDefault = "otel"
    /// `ADDRESS:PORT` on loopback; nil: not served over TCP.
    public var listen: String?
    /// The namespace of records whose resource has no `prism.namespace`; nil: `otel`.
    public var namespace: String?
    /// An error with an exception is also reported as `appCrash`.
    public var exceptions = false
    /// Whether any of `listen` and `namespace` is set: then the ingest socket takes OTLP too.
    public var isOn: Bool { listen != nil || namespace != nil }
    public init() {}
  }

  /// The keys under `forward`.
  public struct Forward: Sendable, Equatable {
    /// The namespace if the configuration names no other.
    public static let namespaceDefault = "logs"
    /// The path of a Unix socket, at most 107 bytes, with the mode and the group of the ingest socket; nil: it is not opened.
    public var socket: String?
    /// `ADDRESS:PORT` on loopback; nil: not served over TCP.
    public var listen: String?
    /// The namespace of the events; nil: `logs`.
    public var namespace: String?
    /// Types of tags, in the order of the file; the first that matches decides. A tag without a match is the type.
    public var types: [TagRule] = []
    /// The secret that both ends must know over TCP; nil: no handshake.
    public var sharedKeyFile: HeldFile?
    /// Its text.
    public var sharedKey: Secret? { sharedKeyFile?.content }
  }

  /// The keys under `statsd` and `syslog`.
  public struct Messages: Sendable, Equatable {
    /// The path of a Unix socket for datagrams, with the mode and the group of the ingest socket; nil: it is not opened.
    public var socket: String?
    /// `ADDRESS:PORT` on loopback; nil: not served over UDP, nor over TCP.
    public var listen: String?
    /// The namespace of the reports.
    public var namespace: String
    /// Types by the name of a metric or an app, in the order of the file; the first that matches decides.
    public var types: [TagRule] = []
    public init(namespace: String) { self.namespace = namespace }

    /// nil: no rule is for the name.
    public func type(of name: String) -> String? { types.first { Glob.matches($0.glob, name) }?.type.text }
  }

  /// The keys under `crashSpool`.
  public struct CrashSpool: Sendable, Equatable {
    /// The folder's path; nil: there is no crash spool.
    public var folder: String?
    /// The most that the files of one user may have; newer ones beyond it are deleted.
    public var userBytesMax = 16 * 1_048_576
    public init() {}
  }

  /// The keys under `host`.
  public struct Host: Sendable, Equatable {
    /// The namespace if the configuration names no other.
    public static let namespaceDefault = "host"
    /// The time between two reports, 5 s to a day; nil: the machine is not reported.
    public var interval: Duration?
    /// The namespace of the reports; nil: `host`.
    public var namespace: String?
    public init() {}
  }

  /// The keys under `journal`.
  public struct Journal: Sendable, Equatable {
    /// The namespace if the configuration names no other.
    public static let namespaceDefault = "logs"
    /// An entry that meets any of them is reported.
    public var match: [JournalMatch] = []
    /// Coredumps of all programs are reported, also of those that `match` leaves out.
    public var coredumps = false
    /// The age of the oldest entry that is reported at the first start.
    public var since: Duration = .seconds(3600)
    /// The namespace of the reports; nil: `logs`.
    public var namespace: String?
    /// The folder of the journal; nil: the system's.
    public var folder: String?
    /// Whether the journal is read.
    public var isOn: Bool { !match.isEmpty || coredumps }
    public init() {}
  }

  /// The keys under `commands`.
  public struct Commands: Sendable, Equatable {
    /// The commands that are carried out; empty: there is no table of commands.
    public var allow: Set<CommandName> = []
    /// Paths of files that `collect` may take; `*` is any text within one part of a path.
    public var files: [String] = []
    /// Names of units `prism-command@NAME.service` that `run` may start.
    public var units: [String] = []
    /// The socket that starts such a unit, at most 107 bytes.
    public var runSocket = "/run/prism/run.sock"
    /// That of `remote.publicKey`, with or without `remote.url`: 32 bytes; nil: commands need no signature.
    public var publicKey: [UInt8]?
    /// `ask.allow`: types and patterns of kept reports that a server may ask for; empty: it may ask for nothing.
    public var askTypes: [ReportType] = []
    /// `ask.maxKByte`: the most that may leave for one question.
    public var askBytesMax = 1 << 20
    /// `ask.everySecond`: how often questions are looked for on networks that are not metered.
    public var askInterval: Duration = .seconds(30)
    /// Whether any command is carried out: there is a table of commands.
    public var isOn: Bool { !allow.isEmpty || !askTypes.isEmpty }
    public init() {}

    /// The types that triggers of a server may let go; empty: they don't hold.
    public var triggerTypes: [ReportType] { allow.contains(.trigger) && publicKey != nil ? askTypes : [] }

    /// Whether kept reports of a type, or of a pattern in the same words, may be asked for.
    public func allowsAsking(for type: ReportType) -> Bool {
      askTypes.contains { $0 == type || $0.isPattern && !type.isPattern && $0.matches(type) }
    }
  }

  /// An entry of `forward.types`.
  public struct TagRule: Sendable, Equatable {
    /// `*` is any text.
    public var glob: String
    /// The type of the events.
    public var type: ReportType
    public init(glob: String, type: ReportType) { (self.glob, self.type) = (glob, type) }
  }

  /// The keys under `control`.
  public struct Control: Sendable, Equatable {
    /// The path of the socket, at most 107 bytes.
    public var socket = "/run/prism/control.sock"
    /// The group whose members may send every command.
    public var group: String?
    /// The group whose members may send commands that change nothing.
    public var readers: String?
  }

  /// The upper ends of a namespace's values; remote configuration stays within them.
  public struct Ceilings: Sendable, Equatable {
    /// In MiB, seconds, rows, MiB and days.
    public var maxBodyMByte = 3, periodicTimerSecond = 30, maxItem = 1000, maxFlowMByte = 100, expirationDay = 30
  }

  /// A key file of a daemon or a collector, read and checked when the configuration was.
  public struct Key: Sendable, Equatable {
    /// The id in packets.
    public var id: String
    /// The path that was found: absolute, or below `$CREDENTIALS_DIRECTORY` or the config's folder.
    public var file: String
    /// 16 or 32 bytes.
    public var secret: Secret
    /// The file holds a master: each device's own key is made from it. Of a collector only.
    public var derivesForDevice: Bool
    /// Namespaces that are taken under the key; nil: all. Of a collector only.
    public var namespaces: Set<String>?

    public init(
      id: String, file: String, secret: Secret, derivesForDevice: Bool = false, namespaces: Set<String>? = nil
    ) {
      (self.id, self.file, self.secret) = (id, file, secret)
      (self.derivesForDevice, self.namespaces) = (derivesForDevice, namespaces)
    }
  }

  /// The kind of an interface; an ignored one is no network.
  public enum NetworkClass: String, Sendable, CaseIterable { case metered, unmetered, ignored }

  /// The keys under `network`.
  public struct Network: Sendable, Equatable {
    /// The kind of an interface that no rule names and prism does not recognize: `metered` or `unmetered`.
    public var fallback = NetworkClass.unmetered
    /// Globs in the order of the file; the first that matches counts.
    public var interfaces: [InterfaceRule] = []
    public init() {}
  }

  /// An entry of `network.interfaces`.
  public struct InterfaceRule: Sendable, Equatable {
    /// The name of an interface; `*` is any text.
    public var glob: String
    /// The kind of interfaces that match.
    public var counts: NetworkClass
    public init(glob: String, counts: NetworkClass) { (self.glob, self.counts) = (glob, counts) }
  }

  /// The keys under `remote`.
  public struct Remote: Sendable, Equatable {
    /// The server, https or loopback.
    public var url: String
    /// The time between questions, 10 to 86,400 s.
    public var interval: Duration = .seconds(600)
    /// The namespace keys that remote configuration may set.
    public var allow: Set<String>
    /// Ed25519, 32 bytes; nil: answers need no signature.
    public var publicKey: [UInt8]?
    /// A bearer token.
    public var token: HeldFile?
    /// Certificates for the server.
    public var tls = TLSFiles()
    public init(url: String, allow: Set<String>) { (self.url, self.allow) = (url, allow) }
  }

  public init() {}
}
