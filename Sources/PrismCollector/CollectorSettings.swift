import Glibc
import PrismBase
import PrismConfig
import PrismProtocol

/// The settings of a collector's file (`--config`), paths not yet opened. A flag of the command line has precedence.
///
///     listen: 0.0.0.0:8443
///     state: /var/lib/prism-collector
///     store: postgresql://prism@db1,db2/prism
///     storePasswordFile: keys/pgpass
///     tokenFile: /etc/prism/collector.tokens
///     readerTokenFile: /etc/prism/reader.tokens
///     operatorTokenFile: /etc/prism/operator.tokens
///     reader: {listen: 127.0.0.1:8081, hosts: [prism.example]}
///     retentionDay: 90
///     remoteConfig: /etc/prism/remote.d
///     signingKey: /etc/prism/signing.pem
///     keys: [{id: main, file: /etc/prism/keys/main.key}]
///     sealKeys: [/etc/prism/keys/seal.pem]
///     tls: {certFile: cert.pem, keyFile: key.pem, clientCAFile: clients.pem}
public struct CollectorSettings: Sendable, Equatable {
  /// Every fault of a file.
  public struct Faults: Error, Equatable {
    /// One a line: `FILE:LINE: KEY: what is wrong`.
    public let lines: [String]
  }

  /// `ADDRESS:PORT` where packets are taken.
  public var listen: String?
  /// The state folder.
  public var state: String?
  /// `sqlite:` and the folder `state`, or a connection URI of PostgreSQL; nil: SQLite in `state`.
  public var store: String?, storePasswordFile: String?
  /// 1,000 to 600,000.
  public var commitDeadlineMilliseconds: Int?
  /// The senders' bearer tokens, one a line.
  public var tokenFile: String?
  /// The readers' bearer tokens, and the `ADDRESS:PORT` where reports are read.
  public var readerTokenFile: String?, readerListen: String?
  /// Bearer tokens of those who read and change.
  public var operatorTokenFile: String?
  /// Names that the reader's address has beside its own.
  public var readerHosts: [String] = []
  /// `retentionDay`, and `memoryMByte` in bytes.
  public var retentionDays: Int?, memoryBytes: Int?
  /// `devicePacketPerMinute`, `deviceMBytePerDay`, `packetPerMinute`, `startDevicePerSecond`.
  public var deviceLimits = DeviceLimits()
  /// `enroll.allowPlain`.
  public var allowsPlainEnrollment = false
  /// `outputs`, in their order.
  public var outputs: [OutputSettings] = []
  /// `outputLagMByte`.
  public var outputLagBytes: Int?
  /// `skip` or `refuse`.
  public var onLag: LagPolicy?
  /// A folder of namespace files, and the key (PEM) that signs what is served of it.
  public var remoteConfig: String?, signingKey: String?
  /// `tls`: the files of the certificate, of its key, and of the authorities of clients.
  public var certFile: String?, keyFile: String?, clientCAFile: String?
  /// Id and file, in their order.
  public var keys: [(id: String, file: String)] = []
  /// `sealKeys`: files of private keys (PEM) to which payloads are sealed.
  public var sealKeys: [String] = []
  /// By the key's id.
  public var keyRules: [String: KeyRule] = [:]

  public init() {}

  /// - Throws: every fault, one a line: `FILE:LINE: KEY: what is wrong`.
  public init(file: String, bytes: [UInt8]) throws(Faults) {
    let (root, faults) = YAMLParser.parse(bytes)
    var lines = faults.map { "\(file):\($0.line): \($0.message)" }
    if let root, !root.isNull {
      if case .mapping(let entries) = root.value {
        for entry in entries { take(entry, under: "", file, &lines) }
      } else {
        lines.append("\(file):\(root.line): must be a mapping of keys to values")
      }
    }
    if let fault = readerFault { lines.append("\(file):1: reader.listen: \(fault)") }
    if (certFile == nil) != (keyFile == nil) { lines.append("\(file):1: tls: certFile and keyFile go together") }
    guard lines.isEmpty else { throw Faults(lines: lines) }
  }

  /// Without tokens only this machine may read, and no other can reach a loopback address.
  public var readerFault: String? {
    guard let readerListen, readerTokenFile == nil, operatorTokenFile == nil,
      !(HostAndPort.split(readerListen).map { HostAndPort.isLoopback($0.host) } ?? false)
    else { return nil }
    return "\(readerListen) is no loopback address, so it needs readerTokenFile, a file of tokens of which each reader "
      + "gives one; without it, take 127.0.0.1:8081"
  }

  /// Looks relative paths of keys, tokens and certificates up: in `credentials`, beside the file, then where we are.
  /// - Parameter credentials: `$CREDENTIALS_DIRECTORY`.
  public mutating func locateFiles(besides file: String, credentials: String?) {
    let folder = file.lastIndex(of: "/").map { String(file[...$0]) } ?? "."
    let search = FileSearch(credentials: credentials, folders: [folder])
    let located = { (path: String) in search.candidates(path).first { access($0, F_OK) == 0 } ?? path }
    for path in [
      \Self.tokenFile, \.readerTokenFile, \.operatorTokenFile, \.storePasswordFile, \.remoteConfig, \.signingKey,
      \.certFile, \.keyFile, \.clientCAFile,
    ] {
      self[keyPath: path] = self[keyPath: path].map(located)
    }
    keys = keys.map { ($0.id, located($0.file)) }
    sealKeys = sealKeys.map(located)
    for index in outputs.indices { outputs[index].locateFiles(located) }
  }

  private mutating func take(_ entry: YAMLEntry, under prefix: String, _ file: String, _ faults: inout [String]) {
    let key = prefix + entry.key
    let place = "\(file):\(entry.line): \(key)"
    switch (key, entry.node.value) {
    case (_, .refused): break  // its fault is told
    case ("tls", .mapping(let entries)):
      for entry in entries { take(entry, under: "tls.", file, &faults) }
    case ("keys", .sequence(let nodes)):
      for node in nodes { takeKey(node, place, &faults) }
    case ("reader", .mapping(let entries)):
      for entry in entries { take(entry, under: "reader.", file, &faults) }
    case ("enroll", .mapping(let entries)):
      for entry in entries { take(entry, under: "enroll.", file, &faults) }
    case ("enroll.allowPlain", .scalar(let scalar)):
      if ["true", "false"].contains(scalar.text) {
        allowsPlainEnrollment = scalar.text == "true"
      } else {
        faults.append("\(place): is \(scalar.text), must be true or false")
      }
    case ("reader.hosts", .sequence(let nodes)): readerHosts += Self.texts(nodes, "names", place, &faults)
    case ("sealKeys", .sequence(let nodes)): sealKeys += Self.texts(nodes, "files", place, &faults)
    case ("outputs", .sequence(let nodes)):
      for node in nodes { takeOutput(node, place, &faults) }
    case ("outputLagMByte", .scalar(let scalar)):
      outputLagBytes = Self.number(scalar.text, 1...1_048_576, place, &faults).map { $0 * 1_048_576 }
    case ("onLag", .scalar(let scalar)):
      onLag = LagPolicy(rawValue: scalar.text)
      if onLag == nil { faults.append("\(place): is \(scalar.text), must be skip or refuse") }
    case ("retentionDay", .scalar(let scalar)):
      retentionDays = Self.number(scalar.text, 1...36_500, place, &faults)
    case ("memoryMByte", .scalar(let scalar)):
      memoryBytes = Self.number(scalar.text, 16...4096, place, &faults).map { $0 * 1_048_576 }
    case ("commitDeadlineMs", .scalar(let scalar)):
      commitDeadlineMilliseconds = Self.number(scalar.text, 1000...600_000, place, &faults)
    case (_, .scalar(let scalar)) where Self.limits[key] != nil: takeLimit(key, scalar.text, place, &faults)
    case ("store", .scalar(let scalar)):
      if let fault = takeStore(scalar.text) { faults.append("\(place): \(fault)") }
    case ("tls", _), ("reader", _), ("enroll", _): faults.append("\(place): must be a mapping")
    case ("keys", _): faults.append("\(place): must be a list of {id, file}")
    case ("reader.hosts", _): faults.append("\(place): must be a list of names")
    case ("sealKeys", _): faults.append("\(place): must be a list of files")
    case (_, .scalar(let scalar)) where !scalar.text.isEmpty:
      guard let path = Self.texts[key] else { return faults.append("\(place): \(Self.unknown)") }
      self[keyPath: path] = scalar.text
    default: faults.append(Self.texts[key] == nil ? "\(place): \(Self.unknown)" : "\(place): must be a text")
    }
  }

  private static func texts(
    _ nodes: [YAMLNode], _ what: String, _ place: String, _ faults: inout [String]
  ) -> [String] {
    nodes.compactMap { node in
      if case .scalar(let scalar) = node.value, !scalar.text.isEmpty { return scalar.text }
      faults.append("\(place): must be a list of \(what)")
      return nil
    }
  }

  /// Takes `sqlite:DIR` and `postgresql://…`. - Returns: what is wrong; the text itself may hold a password.
  public mutating func takeStore(_ text: String) -> String? {
    if text.hasPrefix("sqlite:"), text.utf8.count > "sqlite:".utf8.count {
      state = String(text.dropFirst("sqlite:".count))
      return nil
    }
    do throws(PostgreSQLTarget.Fault) { store = try PostgreSQLTarget(uri: text).uri } catch {
      return PostgreSQLTarget.isURI(text) ? error.description : "must be sqlite:DIR or postgresql://USER@HOST/DATABASE"
    }
    return nil
  }

  /// Their ranges. They are numbers of `DeviceLimits`.
  private static let limits: [String: ClosedRange<Int>] = [
    "devicePacketPerMinute": 1...1_000_000, "deviceMBytePerDay": 1...1_048_576, "packetPerMinute": 1...1_000_000_000,
    "startDevicePerSecond": 1...1_000_000,
  ]

  private mutating func takeLimit(_ key: String, _ text: String, _ place: String, _ faults: inout [String]) {
    guard let range = Self.limits[key], let number = Self.number(text, range, place, &faults) else { return }
    switch key {
    case "devicePacketPerMinute": deviceLimits.packetsPerMinute = number
    case "deviceMBytePerDay": deviceLimits.bytesPerDay = number * 1_048_576
    case "packetPerMinute": deviceLimits.allPacketsPerMinute = number
    default: deviceLimits.admittedPerSecond = number
    }
  }

  private static func number(
    _ text: String, _ range: ClosedRange<Int>, _ place: String, _ faults: inout [String]
  ) -> Int? {
    if let number = Int(text), range.contains(number) { return number }
    faults.append("\(place): is \(text), must be a whole number from \(range.lowerBound) to \(range.upperBound)")
    return nil
  }

  private mutating func takeOutput(_ node: YAMLNode, _ place: String, _ faults: inout [String]) {
    do throws(Faults) {
      let output = try OutputSettings(node)
      if outputs.contains(where: { $0.name == output.name }) {
        faults.append("\(place): two outputs are named \(output.name); give each a name")
      }
      outputs.append(output)
    } catch { faults += error.lines.map { "\(place): \($0)" } }
  }

  private mutating func takeKey(_ node: YAMLNode, _ place: String, _ faults: inout [String]) {
    var reader = EntryReader(node)
    guard let id = reader.text("id"), let file = reader.text("file") else {
      return faults.append("\(place): each key is {id: …, file: …}, and may have derive and namespaces")
    }
    if keys.contains(where: { $0.id == id }) { reader.faults.append("id: two keys have the id \(id)") }
    var rule = KeyRule()
    if let derive = reader.text("derive") {
      rule.derivesForDevice = derive == "device"
      if derive != "device" {
        reader.faults.append("derive: must be device; leave the key out for one key of all devices")
      }
    }
    if reader.has("namespaces") {
      let names = reader.texts("namespaces")
      rule.namespaces = Set(names)
      for name in names where NamespaceName(name) == nil { reader.faults.append("namespaces: \(name) is no namespace") }
    }
    reader.refuseOthers(than: ["id", "file", "derive", "namespaces"])
    faults += reader.faults.map { "\(place): \($0)" }
    keys.append((id, file))
    if rule != KeyRule() { keyRules[id] = rule }
  }

  private static let unknown =
    "unknown key; known are listen, state, store, storePasswordFile, commitDeadlineMs, keys, sealKeys, tokenFile, readerTokenFile, operatorTokenFile, reader.listen, reader.hosts, retentionDay, outputs, outputLagMByte, onLag, "
    + "memoryMByte, devicePacketPerMinute, deviceMBytePerDay, packetPerMinute, startDevicePerSecond, enroll.allowPlain, remoteConfig, signingKey, tls.certFile, tls.keyFile, tls.clientCAFile"

  private static var texts: [String: WritableKeyPath<CollectorSettings, String?>] {
    [
      "listen": \.listen, "state": \.state, "storePasswordFile": \.storePasswordFile, "tokenFile": \.tokenFile,
      "tls.certFile": \.certFile,
      "readerTokenFile": \.readerTokenFile, "operatorTokenFile": \.operatorTokenFile, "reader.listen": \.readerListen,
      "remoteConfig": \.remoteConfig, "signingKey": \.signingKey,
      "tls.keyFile": \.keyFile, "tls.clientCAFile": \.clientCAFile,
    ]
  }

  public static func == (a: Self, b: Self) -> Bool {
    texts.values.allSatisfy { a[keyPath: $0] == b[keyPath: $0] } && a.keys.elementsEqual(b.keys, by: ==)
      && a.keyRules == b.keyRules && a.sealKeys == b.sealKeys
      && a.store == b.store && a.outputs == b.outputs && a.outputLagBytes == b.outputLagBytes && a.onLag == b.onLag
      && a.deviceLimits == b.deviceLimits && a.allowsPlainEnrollment == b.allowsPlainEnrollment
      && a.commitDeadlineMilliseconds == b.commitDeadlineMilliseconds
      && a.readerHosts == b.readerHosts && a.retentionDays == b.retentionDays && a.memoryBytes == b.memoryBytes
  }
}
