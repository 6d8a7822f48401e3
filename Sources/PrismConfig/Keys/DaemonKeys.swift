import PrismBase
import PrismProtocol

/// The table "The daemon" of docs/configuration.md.
package enum DaemonKeys {
  /// Every key of prismd.yaml.
  package static let table: KeyTable<DaemonConfiguration> = KeyTable(
    sockets + inputs + messages + storage + limits + identity + network + remote + CommandKeys.keys
      + operation, defaults: DaemonConfiguration(),
    elsewhere: { name in
      let isNamespaceKey = NamespaceKeys.names.contains(name) || NamespaceKeys.table.isGroup(name)
      return isNamespaceKey ? "a namespace's file, namespaces.d/prism.yaml for the built-in one" : nil
    })

  static let names = Set(table.keys.map(\.name))

  private typealias Key = ConfigurationKey<DaemonConfiguration>

  private static let sockets: [Key] = [
    Key(
      "ingest.socket", .path(bytesMax: 107), at: \.ingest.socket, isLive: false, "the socket on which programs report"),
    Key("ingest.mode", .fileMode, at: \.ingest.mode, "the socket's mode"),
    Key("ingest.group", .groupName, optional: \.ingest.group, default: "the daemon's own", "the socket's group"),
    Key(
      "ingest.maxConnections", .integer(1...65_536, unit: "connections"), at: \.ingest.maxConnections,
      "the most connections; further ones get `busy`; the last quarter is kept for users with fewer than 8"),
    Key(
      "ingest.maxConnectionsPerUser", .integer(1...65_536, unit: "connections"), at: \.ingest.maxConnectionsPerUser,
      "the most connections of one user"),
    Key(
      "ingest.memoryMByte", .mebibytes(16...1024), at: \.ingest.memoryBytes,
      "the memory that all clients together may use: requests, reports before their commit, answers; one user may use a quarter of it"
    ),
    Key(
      "control.socket", .path(bytesMax: 107), at: \.control.socket, isLive: false,
      "the socket of `prismctl`; only root, the daemon's own user, `control.group` and `control.readers` get answers; mode 0660, and 0666 if both groups are set"
    ),
    Key("control.group", .groupName, optional: \.control.group, "the group that may use every command of `prismctl`"),
    Key(
      "control.readers", .groupName, optional: \.control.readers,
      "the group that may use `status`, `top`, `tail`, `explain`, `trace`, `doctor`, `network` and `config show`"),
  ]

  private static let inputs: [Key] = [
    Key(
      "otlp.listen", .loopbackAddress, optional: \.otlp.listen,
      "the address on loopback that takes OTLP over HTTP, 127.0.0.1:4318 for exporters with their defaults; the ingest socket takes it too"
    ),
    Key(
      "otlp.namespace", .namespaceName, optional: \.otlp.namespace, default: "otel",
      "the namespace of OTLP records whose resource has no `prism.namespace`; alone, without `otlp.listen`, only the ingest socket takes OTLP"
    ),
    Key(
      "otlp.exceptions", .bool, at: \.otlp.exceptions,
      "an OTLP log record of an error with `exception.*` is also reported as `appCrash`"),
    Key(
      "forward.socket", .path(bytesMax: 107), optional: \.forward.socket,
      "a socket for Fluent's forward protocol, with the mode and the group of the ingest socket"),
    Key(
      "forward.listen", .loopbackAddress, optional: \.forward.listen,
      "the address on loopback that takes Fluent's forward protocol, 127.0.0.1:24224 for senders with their defaults"),
    Key(
      "forward.namespace", .namespaceName, optional: \.forward.namespace, default: "logs",
      "the namespace of Fluent's events"),
    Key(
      "forward.types", .tagRules, at: \.forward.types,
      "the type of each tag, by a glob; the first that matches decides, and a tag without a match is the type"),
    Key(
      "forward.sharedKeyFile", .tokenFile, optional: \.forward.sharedKeyFile,
      "a file with the shared key that senders over TCP must know; a socket does without"),
    Key(
      "journal.match", .journalMatches, at: \.journal.match,
      "entries of systemd's journal that are reported as `journal`: those that meet all keys of any of these maps"),
    Key(
      "journal.coredumps", .bool, at: \.journal.coredumps,
      "coredumps of all programs are reported as `appCrash`; without it those of the units under `journal.match`"),
    Key(
      "journal.sinceSecond", .seconds(0...31_536_000), at: \.journal.since,
      "the age of the oldest entry that is reported at the first start"),
    Key(
      "journal.namespace", .namespaceName, optional: \.journal.namespace, default: "logs",
      "the namespace of the journal's reports"),
    Key(
      "journal.folder", .path(), optional: \.journal.folder, default: "the system's",
      "the folder of the journal's files, for a journal of other machines"),
    Key(
      "host.intervalSecond", .seconds(5...86_400), optional: \.host.interval,
      "the time between two reports `hostMetrics` of the machine; with it comes `appBoot` once a boot"),
    Key(
      "host.namespace", .namespaceName, optional: \.host.namespace, default: "host",
      "the namespace of the machine's reports"),
    Key(
      "crashSpool.folder", .path(), optional: \.crashSpool.folder, default: "/var/spool/prism if it is the daemon's",
      "a folder where programs that can't wait leave reports; it belongs to the daemon's user, with mode 3733"
    ),
    Key(
      "crashSpool.userMByte", .mebibytes(1...1024), at: \.crashSpool.userBytesMax,
      "the most that one user's files in `crashSpool.folder` may have; the newest beyond it are deleted"),
  ]

  private static let messages: [Key] = [
    Key(
      "statsd.socket", .path(bytesMax: 107), optional: \.statsd.socket,
      "a Unix socket for datagrams of StatsD, with the mode and the group of the ingest socket"),
    Key(
      "statsd.listen", .loopbackAddress, optional: \.statsd.listen,
      "the address on loopback that takes StatsD over UDP, 127.0.0.1:8125 for clients with their defaults"),
    Key("statsd.namespace", .namespaceName, at: \.statsd.namespace, "the namespace of the samples"),
    Key(
      "statsd.types", .tagRules, at: \.statsd.types,
      "the type of each metric, by a glob; the first that matches decides, and a metric without a match is of type `statsd`"
    ),
    Key(
      "syslog.socket", .path(bytesMax: 107), optional: \.syslog.socket,
      "a Unix socket for datagrams of syslog, with the mode and the group of the ingest socket"),
    Key(
      "syslog.listen", .loopbackAddress, optional: \.syslog.listen,
      "the address on loopback that takes syslog over UDP and TCP"),
    Key("syslog.namespace", .namespaceName, at: \.syslog.namespace, "the namespace of the messages"),
    Key(
      "syslog.types", .tagRules, at: \.syslog.types,
      "the type of each app, by a glob; the first that matches decides, and an app without a match is of type `syslog`"),
  ]

  private static let storage: [Key] = [
    Key("state", .path(), at: \.state, isLive: false, "the folder of the database and the cached remote configuration"),
    Key(
      "memory", .path(), at: \.memory, isLive: false,
      "the folder for reports of types with `keep: memory`: in a file system in memory, as /run is; made if it is missing"
    ),
    Key(
      "durability", .choice, at: \.durability,
      "`full`: a report is answered after the sync to the disk; `normal`: after the commit, which survives a crash of the daemon, not of the machine"
    ),
  ]

  private static let limits: [Key] = [
    Key(
      "limits.maxBodyMByte", .integer(3...64, unit: "MiB"), at: \.limits.maxBodyMByte,
      "the upper end of a namespace's `maxBodyMByte`"),
    Key(
      "limits.periodicTimerSecond", .integer(30...3600, unit: "seconds"), at: \.limits.periodicTimerSecond,
      "the upper end of `periodicTimerSecond`"),
    Key(
      "limits.maxItem", .integer(1000...10_000, unit: "rows"), at: \.limits.maxItem, "the upper end of `maxItem`"),
    Key(
      "limits.maxFlowMByte", .integer(100...1_048_576, unit: "MiB"), at: \.limits.maxFlowMByte,
      "the upper end of `maxFlowMByte`"),
    Key(
      "limits.expirationDay", .integer(30...3650, unit: "days"), at: \.limits.expirationDay,
      "the upper end of `expirationDay`"),
  ]

  private static let identity: [Key] = [
    Key(
      "device.id", .visibleASCII, at: \.deviceText,
      "`auto` (derived from the machine id, which itself is never sent) or a string"),
    Key(
      "device.tags", .tags, optional: \.deviceTags,
      "tags by which operators find and choose this device; `{}` takes those back that it had"),
    Key("common", .common, at: \.common, "fixed common information, key to string"),
    Key("keys", .keyFiles, at: \.keys, "the packets' keys: a list of `id` and `file`, `prismctl keys new` makes one"),
  ]

  private static let network: [Key] = [
    Key(
      "allowPlain", .bool, at: \.allowPlain,
      "a namespace's `url` may be http:// to another machine; packets stay encrypted, but tokens, device ids and namespaces can be read on the way"
    ),
    Key(
      "network.default", .choice(of: [.unmetered, .metered]), at: \.network.fallback,
      "the kind of an interface that prism does not recognize"),
    Key(
      "network.interfaces", .interfaces, at: \.network.interfaces,
      "the kind of each interface, by its name or a glob; the first that matches decides"),
  ]

  private static let remote: [Key] = [
    Key("remote.url", .secureURL, optional: \.remoteURL, "the server of remote configuration"),
    Key(
      "remote.intervalSecond", .seconds(10...86_400), at: \.remoteValues.interval,
      "the time between two questions to it"),
    Key(
      "remote.allow", .set(of: .remoteKey, "a list of namespace keys that may be set remotely", atLeast: 0),
      at: \.remoteValues.allow,
      default: "the switches and limits; keys that can shrink stored data only with `remote.publicKey`",
      "the namespace keys that remote configuration may set; never keys, tls, allow lists or files"),
    Key(
      "remote.publicKey", .publicKey, optional: \.remoteValues.publicKey,
      "the Ed25519 key that remote configuration and commands must be signed with"),
    Key(
      "remote.tokenFile", .tokenFile, optional: \.remoteValues.token,
      "a file with a bearer token for `remote.url`, read again when it changes"),
    Key(
      "remote.caFile", .certificates, optional: \.remoteValues.tls.caFile, default: "the system's",
      "a private CA for `remote.url`, PEM"),
    Key(
      "remote.certFile", .certificates, optional: \.remoteValues.tls.certFile,
      "a client certificate for `remote.url`, PEM; with `remote.keyFile`"),
    Key(
      "remote.keyFile", .privateKey, optional: \.remoteValues.tls.keyFile, "the client certificate's key, PEM"),
  ]

  private static let operation: [Key] = [
    Key(
      "metrics.listen", .listenAddress, optional: \.metricsListen,
      "the address that serves the status page, `/metrics`, `/healthz` and `/readyz`; a port alone means loopback"),
    Key("log.level", .choice, at: \.logLevel, "the least level that is logged"),
    Key("log.format", .choice, at: \.logFormat, "the format of a log line"),
  ]
}

// How the file's values look where the configuration holds them differently.
extension DaemonConfiguration {
  var deviceText: String {
    get { deviceId ?? "auto" }
    set { deviceId = newValue == "auto" ? nil : newValue }
  }

  private static let remoteDefaults = Remote(url: "", allow: NamespaceKeys.remoteStandard)

  var remoteValues: Remote {
    get { remoteKeys ?? Self.remoteDefaults }
    set { remoteKeys = newValue == Self.remoteDefaults ? nil : newValue }
  }

  var remoteURL: String? {
    get { remoteValues.url.isEmpty ? nil : remoteValues.url }
    set { remoteValues.url = newValue ?? "" }
  }
}

extension ValueForm where Value == [String: String] {
  static var common: Self {
    dictionary(
      of: .text(bytesMax: 1024), "a map of strings",
      names: "1 to 128 visible ASCII characters, and not \(rowKeys.joined(separator: ", "))"
    ) { $0.isVisibleASCII(bytesMax: 128) && !rowKeys.contains($0) }
  }

  /// A row's own, in every case (docs/ingest-protocol.md, "Questions").
  private static var rowKeys: [String] { ["MONITOR_TYPE", "REPORT_ID", "IS_BIZ", "CREATE_TIME"] }
}

extension ValueForm where Value == DeviceTags {
  static var tags: Self {
    ValueForm<[String: String]>.dictionary(
      of: .text(bytesMax: DeviceTags.valueBytesMax), "a map like {region: eu}; \(DeviceTags.rule)",
      names: "1 to 64 of A-Z a-z 0-9 _ -", isName: DeviceTags.isName
    ).converted({ DeviceTags($0) }, back: \.values)
  }
}

extension ValueForm where Value == [DaemonConfiguration.InterfaceRule] {
  static var interfaces: Self {
    ValueForm<[MapEntry<DaemonConfiguration.NetworkClass>]>.map(
      to: .choice, "a map of interface names or globs to metered, unmetered or ignored",
      names: "1 to 64 visible ASCII characters"
    ) { $0.isVisibleASCII(bytesMax: 64) }
    .converted(
      { $0.map { .init(glob: $0.name, counts: $0.value) } },
      back: { $0.map { MapEntry(name: $0.glob, value: $0.counts) } })
  }
}

extension ValueForm where Value == [DaemonConfiguration.TagRule] {
  static var tagRules: Self {
    ValueForm<[MapEntry<ReportType>]>.map(
      to: .reportType, "a map of tags or globs to types", names: "1 to 256 visible ASCII characters"
    ) { $0.isVisibleASCII(bytesMax: 256) }
    .converted(
      { $0.map { .init(glob: $0.name, type: $0.value) } },
      back: { $0.map { MapEntry(name: $0.glob, value: $0.type) } })
  }
}

extension ValueForm where Value == String {
  /// A key that `remote.allow` may list.
  static var remoteKey: Self {
    let allowed = "a namespace's key that may be set remotely"
    let schema: JSONValue = ["enum": .array(NamespaceKeys.remoteListable.sorted().map { .string($0) })]
    return judged(allowed, schema: schema) { name, node, key, checker in
      if NamespaceKeys.remoteListable.contains(name) { return name }
      if NamespaceKeys.names.contains(name) || NamespaceKeys.table.isGroup(name) {
        checker.fault(node.line, key, "is \(name), which can never be set remotely")
      } else {
        let hint = NearestName.of(name, among: NamespaceKeys.remoteListable).map { "; did you mean \($0)?" } ?? ""
        checker.fault(node.line, key, "is \(node.shown), must be \(allowed)\(hint)")
      }
      return nil
    }
  }
}

/// The keys under `commands` of the daemon's file. Remote configuration can't set them.
enum CommandKeys {
  private typealias Key = ConfigurationKey<DaemonConfiguration>

  static let keys: [ConfigurationKey<DaemonConfiguration>] = [
    Key(
      "commands.allow",
      .set(
        of: .choice(of: CommandName.allCases.filter { $0 != .ask }),
        "a list of flush, doctor, log, collect, run, requeue, drop, trigger, erase and accept-store", atLeast: 0),
      at: \.commands.allow, "the commands that a server may send to this device"),
    Key(
      "commands.files", .list(of: .commandFile, "a list of absolute paths, with * and ? in names"),
      at: \.commands.files, "the files that `collect` may take; `*` is any text within a name"),
    Key(
      "commands.units", .list(of: .commandUnit, "a list of names"), at: \.commands.units,
      "the names of the units `prism-command@NAME.service` that `run` may start"),
    Key(
      "commands.runSocket", .path(bytesMax: 107), at: \.commands.runSocket,
      "the socket that starts them, which `prism-run.socket` opens"),
    Key(
      "ask.allow", .list(of: .monitoredType, "a list of types or patterns"), at: \.commands.askTypes,
      "the kept reports that a server may ask for"),
    Key(
      "ask.maxKByte",
      .integer(1...1_048_576, unit: "KiB").converted({ $0 << 10 }, back: { $0 >> 10 }), at: \.commands.askBytesMax,
      "the most that may leave this device for one question"),
    Key(
      "ask.everySecond", .seconds(1...86_400), at: \.commands.askInterval,
      "the time between two looks for questions, if `recordIntervalSecond` is longer and the network is not metered"),
  ]
}

extension ValueForm where Value == String {
  static var commandFile: Self {
    string("an absolute path of at most 4095 bytes without empty parts, `.` and `..`") { path in
      let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
      return path.hasPrefix("/") && path.utf8.count <= 4095 && parts.allSatisfy { !["", ".", ".."].contains($0) }
    }
  }

  static var commandUnit: Self {
    string("1 to 64 of A-Z a-z 0-9 _ -, the first a letter or digit") { NamespaceName($0) != nil }
  }
}
