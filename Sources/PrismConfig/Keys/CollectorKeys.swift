import PrismBase
import PrismProtocol

/// The table "The file" of docs/collector-reference.md.
package enum CollectorKeys {
  /// Every key of a collector's file.
  package static let table = KeyTable<CollectorConfiguration>(
    places + senders + readers + limits + outputs + notices + remote, defaults: CollectorConfiguration())

  private typealias Key = ConfigurationKey<CollectorConfiguration>

  private static let places: [Key] = [
    Key("listen", .serverAddress, at: \.listen, "where packets are taken; port 0 takes any that is free"),
    Key(
      "state", .path(), optional: \.state, default: "required",
      "the folder of the database, made when it is missing; one process holds it"),
    Key(
      "store", .packetStore, at: \.storeText, default: "SQLite in `state`",
      "the place of packets and reports: `sqlite:FOLDER`, or `postgresql://USER@HOST/DATABASE`"),
    Key(
      "storePasswordFile", .secretFile("the path of a file of passwords, not readable by others"),
      optional: \.storePasswordFile, default: "`PGPASSFILE`",
      "passwords for PostgreSQL, lines of `host:port:database:user:password`"),
    Key(
      "commitDeadlineMs", .milliseconds(1000...600_000), at: \.commitDeadline,
      "the longest that PostgreSQL may take from the start of a group of packets to its commit"),
  ]

  private static let senders: [Key] = [
    Key(
      "keys", .collectorKeys, at: \.keys, default: "required",
      "the senders' keys: a list of `id` and `file`, with `derive: device` for a master, and `namespaces`"),
    Key(
      "sealKeys", .sealKeys, at: \.sealKeys, default: "none",
      "files of private keys, PEM, that open sealed payloads; `prismctl keys new --seal` makes one"),
    Key(
      "tokenFile", .tokensFile(isOfReaders: false), optional: \.tokenFile,
      "bearer tokens, one a line, of which every sender must give one; read again when it changes"),
    Key("tls.certFile", .certificates, optional: \.tls.certFile, "serve HTTPS with this certificate, PEM"),
    Key("tls.keyFile", .serverKey, optional: \.tls.keyFile, "the certificate's key, PEM, not readable by others"),
    Key(
      "tls.clientCAFile", .certificates, optional: \.tls.clientCAFile,
      "ask senders for a certificate of these authorities, PEM"),
    Key(
      "memoryMByte", .mebibytes(16...4096), at: \.memoryBytes,
      "the memory of packets from their decryption until they are stored; also the most that one packet may take"),
    Key(
      "connectionMax", .integer(16...1_000_000, unit: "connections"), at: \.connectionsMax,
      "connections of senders at a time; past it, idle ones and those of unproven senders are closed for others"),
    Key(
      "proxy.trusted", .list(of: .networkRange, "a list of addresses"), at: \.trustedProxies, default: "none",
      "addresses or networks of proxies in front: the sender is the last other address of their `X-Forwarded-For`"),
  ]

  private static let readers: [Key] = [
    Key(
      "reader.listen", .serverAddress, optional: \.reader.listen,
      default: "127.0.0.1:8081 once a token is set, otherwise only the socket `reader.sock` in `state`",
      "where reports are read, and the page is served; without any token it must be a loopback address"),
    Key(
      "reader.hosts", .list(of: .text(bytesMax: 253), "a list of names"), at: \.reader.hosts, default: "none",
      "names under which the reader's address is asked, beside `localhost` and addresses in numbers"),
    Key(
      "reader.audit", .bool, at: \.reader.audit,
      "note in the namespace `prism-audit` who read, exported and changed what; operators without a list read it"),
    Key(
      "assertion.header", .headerName, optional: \.assertion.header,
      "the header in which a proxy says who reads: a JSON Web Token, signed by RS256 or ES256"),
    Key(
      "assertion.keysFile", .webKeys, optional: \.assertion.keys,
      "the keys that sign it, a JSON Web Key Set; read again when it changes"),
    Key(
      "assertion.audience", .text(bytesMax: 512), optional: \.assertion.audience,
      "its `aud`: the proxy's name for this collector"),
    Key(
      "assertion.issuer", .text(bytesMax: 512), optional: \.assertion.issuer, default: "any",
      "its `iss`"),
    Key(
      "assertion.claim", .text(bytesMax: 64), at: \.assertion.claim,
      "the claim that names the reader, as `sub` or `email`; lines `subject:NAME` of the readers' files give the rights"
    ),
    Key(
      "readerTokenFile", .tokensFile(isOfReaders: true), optional: \.readerTokenFile,
      "bearer tokens of readers, one a line, each for all namespaces or for a list; read again when it changes"),
    Key(
      "operatorTokenFile", .tokensFile(isOfReaders: true), optional: \.operatorTokenFile,
      "bearer tokens of operators, who read and change, as in `readerTokenFile`; read again when it changes"),
  ]

  private static let limits: [Key] = [
    Key(
      "retentionDay", .integer(1...36_500, unit: "days"), optional: \.retentionDays, default: "reports are kept",
      "the age at which reports are deleted; with SQLite days count on which the collector ran"),
    Key(
      "retention", .retention, at: \.retention, default: "none",
      "shorter ages for some namespaces and types: a list of `namespace`, `type` and `day`; the first that fits counts"),
    Key(
      "quotas", .quotas, at: \.limits.quotas, default: "none",
      "the reports that namespaces may have at rest: a list of `namespace` and `maxRow`; past it devices get 507 for it"
    ),
    Key(
      "devicePacketPerMinute", .integer(1...1_000_000, unit: "packets"), optional: \.limits.devicePacketsPerMinute,
      "packets of one device in a minute, with bursts of as many; each replica counts for itself"),
    Key(
      "deviceRowPerDay", .integer(1...1_000_000_000_000, unit: "rows"), at: \.limits.deviceRowsPerDay,
      "rows of one device in a day, 24 hours in which the collector runs, at all replicas"),
    Key(
      "deviceMBytePerDay", .mebibytes(1...1_048_576), at: \.limits.deviceBytesPerDay,
      "bytes to which the packets of one device unpack in a day, at all replicas"),
    Key(
      "packetPerMinute", .integer(1...1_000_000_000, unit: "packets"), optional: \.limits.packetsPerMinute,
      "packets of all devices in a minute, with bursts of as many; each replica counts for itself"),
    Key(
      "startDevicePerSecond", .integer(1...1_000_000, unit: "devices"), at: \.limits.startDevicesPerSecond,
      "devices that each replica lets in a second after its start, until all that are known may send"),
    Key(
      "enroll.allowPlain", .bool, at: \.allowsPlainEnrollment,
      "devices are enrolled over plain HTTP: a balancer in front ends TLS"),
  ]

  private static let outputs: [Key] = [
    Key(
      "outputs", .outputs, at: \.outputs, default: "none",
      "where reports are handed on to: a list of `ndjson`, `otlp`, `kafka`, `clickhouse` and `postgresql`, each with its own keys"
    ),
    Key(
      "outputLagMByte", .mebibytes(1...1_048_576), at: \.outputLagBytes,
      "reports past `retentionDay` that an output has not taken stay; with more bytes `onLag` decides"),
    Key(
      "onLag", .choice, at: \.onLag,
      "the rule past `outputLagMByte`: `hold` keeps them; `skip` deletes the oldest; `refuse` answers new packets with 503"
    ),
  ]

  private static let notices: [Key] = [
    Key(
      "debuginfod", .secureURL, optional: \.debuginfod,
      "a server of debuginfod that has the debug files of builds that crashed; it learns their build ids"),
    Key(
      "notices", .notices, at: \.notices, default: "none",
      "webhooks that get notices of new and regressed groups of crashes, silent devices, and counts over a limit"),
  ]

  private static let remote: [Key] = [
    Key(
      "remoteConfig", .folder, optional: \.remoteConfig,
      "a folder of namespace files that are served as remote configuration"),
    Key(
      "signingKey", .signingKey, optional: \.signingKey, "the Ed25519 key, PEM, not readable by others, that signs it"),
  ]
}

extension CollectorConfiguration {
  /// `store` as the file has it.
  var storeText: String {
    get { store ?? "sqlite:" + (state ?? "") }
    set {
      if newValue.hasPrefix(Self.folderScheme) {
        state = String(newValue.dropFirst(Self.folderScheme.count))
      } else {
        store = newValue
      }
    }
  }

  static let folderScheme = "sqlite:"
}

extension ValueForm where Value == String {
  /// Where a server listens. Port 0 is any that is free.
  fileprivate static var serverAddress: Self {
    string("ADDRESS:PORT, [ADDRESS]:PORT for IPv6") { text in
      guard let (host, port) = HostAndPort.split(text), let port, UInt16(port) != nil else { return false }
      return !host.isEmpty && text.isVisibleASCII && text.hasPrefix("[") == host.contains(":")
    }
  }

  fileprivate static var headerName: Self {
    string("the name of a header: 1 to 64 of A-Z a-z 0-9 -") {
      $0.isName(bytesMax: 64, punctuation: "-", firstIsAlphanumeric: true)
    }
  }

  /// A folder from the root after `sqlite:`, or a connection URI. Faults don't show it: it may hold a password.
  fileprivate static var packetStore: Self {
    let allowed = "sqlite:FOLDER or postgresql://USER@HOST/DATABASE"
    return judged(allowed) { text, node, key, checker in
      let scheme = CollectorConfiguration.folderScheme
      if text.hasPrefix(scheme) {
        let folder = YAMLNode(
          line: node.line, .scalar(YAMLScalar(text: String(text.dropFirst(scheme.count)), isPlain: false)))
        return ValueForm.path().read(folder, key, &checker).map { scheme + $0 }
      }
      return ValueForm.databaseURI(allowed).read(node, key, &checker)
    }
  }

  /// A connection URI of PostgreSQL. Faults don't show it: it may hold a password.
  static func databaseURI(_ allowed: String) -> Self {
    judged(allowed) { text, node, key, checker in
      guard text.hasPrefix("postgresql://") || text.hasPrefix("postgres://") else {
        checker.fault(node.line, key, "must be \(allowed)")
        return nil
      }
      guard let fault = checker.collector?.storeFault(text) else { return text }
      checker.fault(node.line, key, fault)
      return nil
    }
  }

  /// A folder that is there.
  fileprivate static var folder: Self {
    let allowed = "the path of a folder that can be read"
    return judged(allowed) { text, node, key, checker in
      for candidate in checker.search.candidates(text) {
        do throws(FileFault) {
          if try FileReading.names(in: candidate) != nil { return candidate }
        } catch {
          checker.fault(node.line, key, "is \(node.shown), which cannot be read: \(error.reason)")
          return nil
        }
      }
      let places = text.hasPrefix("/") ? "" : " in \(checker.search.places)"
      checker.fault(node.line, key, "is \(node.shown), which is not there\(places); make the folder")
      return nil
    }
  }
}

// Files with a secret: others may not read them.
extension ValueForm where Value == HeldFile {
  fileprivate static var serverKey: Self {
    file("the path of a file with a private key in PEM, not readable by others", isShown: true, isSecret: true) {
      (bytes, _) throws(FileFault) in try bytes.asPEM(.privateKey)
    }
  }

  fileprivate static var signingKey: Self { keyPair("an Ed25519 key", \.signingKeyFault) }
  fileprivate static var sealKey: Self { keyPair("an X25519 key", \.sealKeyFault) }

  private static func keyPair(
    _ what: String, _ fault: any KeyPath<CollectorChecks, @Sendable ([UInt8]) -> String?> & Sendable
  ) -> Self {
    file("the path of a file with \(what) in PEM, not readable by others", isShown: true, isSecret: true) {
      (bytes, checker) throws(FileFault) in
      if let fault = checker.collector?[keyPath: fault](bytes) { throw FileFault(fault) }
      return bytes
    }
  }

  /// Bearer tokens, one a line. The path alone is held: they are read again while the collector runs.
  fileprivate static func tokensFile(isOfReaders: Bool) -> Self {
    secretFile("the path of a file of tokens, not readable by others") { (bytes) throws(FileFault) in
      _ = try TokenList(bytes, isOfReaders: isOfReaders)
    }
  }

  /// The path alone is held: they are read again while the collector runs.
  fileprivate static var webKeys: Self {
    file("the path of a JSON Web Key Set", isShown: true, isSecret: false, bytesMax: 65_536) {
      (bytes, checker) throws(FileFault) in
      if let fault = checker.collector?.webKeysFault(bytes) { throw FileFault(fault) }
      return []
    }
  }

  /// Only the path is held.
  static func secretFile(
    _ allowed: String, check: @escaping @Sendable ([UInt8]) throws(FileFault) -> Void = { (_) throws(FileFault) in }
  ) -> Self {
    file(allowed, isShown: false, isSecret: true, bytesMax: 65_536) { (bytes, _) throws(FileFault) in
      try check(bytes)
      return []
    }
  }
}

extension ValueForm where Value == [HeldFile] {
  fileprivate static var sealKeys: Self { .list(of: .sealKey, "a list of files") }
}
