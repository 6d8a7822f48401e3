import Glibc
import PrismConfig

/// What a collector's file says (`--config`), paths not yet opened; a flag of the command line counts before it.
///
///     listen: 0.0.0.0:8443
///     state: /var/lib/prism-collector
///     tokenFile: /etc/prism/collector.tokens
///     readerTokenFile: /etc/prism/reader.tokens
///     reader: {listen: 127.0.0.1:8081, hosts: [prism.example]}
///     retentionDay: 90
///     remoteConfig: /etc/prism/remote.d
///     signingKey: /etc/prism/signing.pem
///     keys: [{id: main, file: /etc/prism/keys/main.key}]
///     tls: {certFile: cert.pem, keyFile: key.pem, clientCAFile: clients.pem}
public struct CollectorSettings: Sendable, Equatable {
  public struct Faults: Error, Equatable { public let lines: [String] }

  public var listen: String?
  public var state: String?
  public var tokenFile: String?
  public var readerTokenFile: String?, readerListen: String?
  public var readerHosts: [String] = []
  public var retentionDays: Int?, memoryBytes: Int?
  /// A folder of namespace files, and the key (PEM) that signs what is served of it.
  public var remoteConfig: String?, signingKey: String?
  public var certFile: String?, keyFile: String?, clientCAFile: String?
  /// Id and file, in their order.
  public var keys: [(id: String, file: String)] = []

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
    if readerListen != nil && readerTokenFile == nil {
      lines.append(
        "\(file):1: reader.listen: needs readerTokenFile, a file of tokens of which each reader gives one; without it, "
          + "reports are read over the socket reader.sock in the state folder")
    }
    if (certFile == nil) != (keyFile == nil) { lines.append("\(file):1: tls: certFile and keyFile go together") }
    guard lines.isEmpty else { throw Faults(lines: lines) }
  }

  /// Looks relative paths of keys, tokens and certificates up: in `credentials`, beside the file, then where we are.
  /// - Parameter credentials: `$CREDENTIALS_DIRECTORY`.
  public mutating func locateFiles(besides file: String, credentials: String?) {
    let folder = file.lastIndex(of: "/").map { String(file[...$0]) } ?? "."
    let search = FileSearch(credentials: credentials, folders: [folder])
    let located = { (path: String) in search.candidates(path).first { access($0, F_OK) == 0 } ?? path }
    for path in [
      \Self.tokenFile, \.readerTokenFile, \.remoteConfig, \.signingKey, \.certFile, \.keyFile, \.clientCAFile,
    ] {
      self[keyPath: path] = self[keyPath: path].map(located)
    }
    keys = keys.map { ($0.id, located($0.file)) }
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
    case ("reader.hosts", .sequence(let nodes)):
      for node in nodes {
        if case .scalar(let scalar) = node.value, !scalar.text.isEmpty {
          readerHosts.append(scalar.text)
        } else {
          faults.append("\(place): must be a list of names")
        }
      }
    case ("retentionDay", .scalar(let scalar)):
      retentionDays = Self.number(scalar.text, 1...36_500, place, &faults)
    case ("memoryMByte", .scalar(let scalar)):
      memoryBytes = Self.number(scalar.text, 16...4096, place, &faults).map { $0 * 1_048_576 }
    case ("tls", _), ("reader", _): faults.append("\(place): must be a mapping")
    case ("keys", _): faults.append("\(place): must be a list of {id, file}")
    case ("reader.hosts", _): faults.append("\(place): must be a list of names")
    case (_, .scalar(let scalar)) where !scalar.text.isEmpty:
      guard let path = Self.texts[key] else { return faults.append("\(place): \(Self.unknown)") }
      self[keyPath: path] = scalar.text
    default: faults.append(Self.texts[key] == nil ? "\(place): \(Self.unknown)" : "\(place): must be a text")
    }
  }

  private static func number(
    _ text: String, _ range: ClosedRange<Int>, _ place: String, _ faults: inout [String]
  ) -> Int? {
    if let number = Int(text), range.contains(number) { return number }
    faults.append("\(place): is \(text), must be a whole number from \(range.lowerBound) to \(range.upperBound)")
    return nil
  }

  private mutating func takeKey(_ node: YAMLNode, _ place: String, _ faults: inout [String]) {
    var values: [String: String] = [:]
    if case .mapping(let entries) = node.value {
      for entry in entries {
        if case .scalar(let scalar) = entry.node.value { values[entry.key] = scalar.text }
      }
    }
    guard values.count == 2, let id = values["id"], let file = values["file"] else {
      return faults.append("\(place): each key is {id: …, file: …}")
    }
    keys.append((id, file))
  }

  private static let unknown =
    "unknown key; known are listen, state, keys, tokenFile, readerTokenFile, reader.listen, reader.hosts, retentionDay, "
    + "memoryMByte, remoteConfig, signingKey, tls.certFile, tls.keyFile, tls.clientCAFile"

  private static var texts: [String: WritableKeyPath<CollectorSettings, String?>] {
    [
      "listen": \.listen, "state": \.state, "tokenFile": \.tokenFile, "tls.certFile": \.certFile,
      "readerTokenFile": \.readerTokenFile, "reader.listen": \.readerListen,
      "remoteConfig": \.remoteConfig, "signingKey": \.signingKey,
      "tls.keyFile": \.keyFile, "tls.clientCAFile": \.clientCAFile,
    ]
  }

  public static func == (a: Self, b: Self) -> Bool {
    texts.values.allSatisfy { a[keyPath: $0] == b[keyPath: $0] } && a.keys.elementsEqual(b.keys, by: ==)
      && a.readerHosts == b.readerHosts && a.retentionDays == b.retentionDays && a.memoryBytes == b.memoryBytes
  }
}
