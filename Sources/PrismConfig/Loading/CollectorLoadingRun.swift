import PrismBase
import PrismProtocol

/// One pass over a collector's file and its flags.
struct CollectorLoadingRun {
  private let path: String?
  private var checker = Checker()

  private(set) var configuration = CollectorConfiguration()
  private(set) var faults: [ConfigurationFault] = []
  /// Of the keys that were given; a flag's line is 0.
  private var origins: [String: (file: String, line: Int)] = [:]

  init(path: String?, checks: CollectorChecks) {
    self.path = path
    checker.collector = checks
  }

  var sortedFaults: [ConfigurationFault] {
    let place = { (fault: ConfigurationFault) in fault.line > 0 ? fault.line : Int.max }
    return faults.enumerated().sorted { (place($0.element), $0.offset) < (place($1.element), $1.offset) }.map(\.element)
  }

  mutating func read(_ path: String, _ environment: [String: String]) {
    let credentials = environment["CREDENTIALS_DIRECTORY"].flatMap { $0.isEmpty ? nil : $0 }
    let folders = [FilePath.absolute(FilePath.folder(of: path)), FilePath.absolute(".")]
    var checker = checker.next(path, FileSearch(credentials: credentials, folders: folders))
    if let root = checker.tree(environment) {
      let lines = CollectorKeys.table.read(root, into: &configuration, &checker)
      origins = lines.mapValues { (path, $0) }
    }
    faults += checker.faults
  }

  /// A flag counts before the file; keys of both are known.
  mutating func read(_ flag: CollectorLoader.Flag) {
    var checker = checker.next(flag.name, FileSearch(credentials: nil, folders: [FilePath.absolute(".")]))
    let (keys, sealKeys) = (configuration.keys, configuration.sealKeys)
    (configuration.keys, configuration.sealKeys) = ([], [])
    _ = CollectorKeys.table.read(flag.node, into: &configuration, &checker)
    let own = configuration.keys
    configuration.keys = keys.filter { key in !own.contains { $0.id == key.id } } + own
    configuration.sealKeys = sealKeys + configuration.sealKeys
    origins[flag.key] = (flag.name, 0)
    faults += checker.faults
  }

  // MARK: What concerns several keys

  mutating func settle() {
    // Of a file that could not be read nothing is known.
    guard !faults.contains(where: { ["file", "YAML"].contains($0.key) }) else { return }
    if configuration.state == nil, !isGiven("state"), !faults.contains(where: { $0.key == "store" }) {
      fault("state", "is missing, must be the folder of the database")
    }
    if !isGiven("keys") { fault("keys", "is missing, must be a list of keys like {id: main, file: keys/main.key}") }
    if let listen = configuration.reader.listen, !isGiven("readerTokenFile"), !isGiven("operatorTokenFile"),
      !(HostAndPort.split(listen).map { HostAndPort.isLoopback($0.host) } ?? false)
    {
      let advice = "so it needs readerTokenFile; without it take 127.0.0.1:8081"
      fault("reader.listen", "is \(listen.shownInFault), no loopback address, \(advice)")
    }
    let hasTokens = isGiven("readerTokenFile") || isGiven("operatorTokenFile")
    let reader = configuration.reader.listen ?? (hasTokens ? "127.0.0.1:8081" : nil)
    let places = [
      ListeningPlace("listen", .tcp, configuration.listen), ListeningPlace("reader.listen", .tcp, reader),
    ]
    for (place, other) in ListeningPlace.taken(of: places) { fault(place.key, place.fault(beside: other)) }
    for (given, missing) in [
      ("signingKey", "remoteConfig"), ("tls.certFile", "tls.keyFile"), ("tls.keyFile", "tls.certFile"),
      ("tls.clientCAFile", "tls.certFile"), ("assertion.header", "assertion.keysFile"),
      ("assertion.header", "assertion.audience"), ("assertion.keysFile", "assertion.header"),
      ("assertion.audience", "assertion.header"), ("assertion.issuer", "assertion.header"),
      ("assertion.claim", "assertion.header"),
    ] where isGiven(given) && !isGiven(missing) {
      fault(missing, beside: given, "is missing; \(given) needs it")
    }
    if isGiven("assertion.header"), !isGiven("readerTokenFile"), !isGiven("operatorTokenFile") {
      fault(
        "assertion.header", "needs readerTokenFile or operatorTokenFile, with lines subject:NAME for who may read")
    }
    if let days = configuration.retentionDays, let rule = configuration.retention.first(where: { $0.days > days }) {
      fault(
        "retention", "has \(rule.days) days, but retentionDay deletes all after \(days); raise it, and add a last rule")
    }
    if let certificate = configuration.tls.certFile, let key = configuration.tls.keyFile,
      let why = checker.collector?.identityFault(certificate.content.bytes, key.content.bytes)
    {
      fault("tls.keyFile", "does not fit the certificate: \(why)")
    }
  }

  private func isGiven(_ key: String) -> Bool { origins[key] != nil }

  private mutating func fault(_ key: String, beside given: String? = nil, _ message: String) {
    let origin = origins[given ?? key] ?? (path ?? "command line", path == nil ? 0 : 1)
    faults.append(ConfigurationFault(file: origin.file, line: origin.line, key: key, message: message))
  }
}

extension CollectorLoader.Flag {
  /// A file with this key alone.
  fileprivate var node: YAMLNode {
    key.split(separator: ".").reversed().reduce(valueNode) { node, name in
      YAMLNode(line: 0, .mapping([YAMLEntry(key: String(name), line: 0, node: node)]))
    }
  }

  private var valueNode: YAMLNode {
    func scalar(_ text: String) -> YAMLNode { YAMLNode(line: 0, .scalar(YAMLScalar(text: text, isPlain: false))) }
    switch value {
    case .text(let text): return scalar(text)
    case .entry(let text): return YAMLNode(line: 0, .sequence([scalar(text)]))
    case .key(let id, let file):
      let entries = [("id", id), ("file", file)].map { YAMLEntry(key: $0.0, line: 0, node: scalar($0.1)) }
      return YAMLNode(line: 0, .sequence([YAMLNode(line: 0, .mapping(entries))]))
    }
  }
}

/// Reads a collector's file, and lays the flags of its command line over it.
public struct CollectorLoader: Sendable {
  /// A flag that says what a key of the file says.
  public struct Flag: Sendable {
    /// As faults name it: `--token-file`.
    let name: String
    /// The key's full name: `tokenFile`.
    public let key: String
    let value: Value

    /// A text, or an entry that is added to a list.
    public enum Value: Sendable {
      case text(String)
      case entry(String)
      case key(id: String, file: String)
    }

    /// The flag `name` for the key `key`.
    public init(_ name: String, key: String, _ value: Value) { (self.name, self.key, self.value) = (name, key, value) }
  }

  private let path: String?
  private let flags: [Flag]
  private let environment: [String: String]
  private let checks: CollectorChecks

  /// - Parameters:
  ///   - path: nil: there is no file.
  ///   - environment: for `${NAME}`, and `CREDENTIALS_DIRECTORY`.
  public init(path: String?, flags: [Flag], environment: [String: String], checks: CollectorChecks) {
    (self.path, self.flags, self.environment, self.checks) = (path, flags, environment, checks)
  }

  /// Reads the file and every file that it names, and starts nothing. Blocks on the disk.
  /// - Throws: every fault, by line; those of flags come last, and have the flag for a file.
  public func load() throws(ConfigurationFaults) -> CollectorConfiguration {
    var run = CollectorLoadingRun(path: path, checks: checks)
    if let path { run.read(path, environment) }
    for flag in flags { run.read(flag) }
    run.settle()
    guard run.faults.isEmpty else { throw ConfigurationFaults(run.sortedFaults) }
    return run.configuration
  }
}
