import PrismBase
import PrismProtocol

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
  /// - Throws: every fault; those of flags have the flag for a file, and no line.
  public func load() throws(ConfigurationFaults) -> CollectorConfiguration {
    var configuration = CollectorConfiguration()
    var faults: [ConfigurationFault] = []
    var origins: [String: (file: String, line: Int)] = [:]
    if let path {
      var checker = checker(
        of: path,
        FileSearch(
          credentials: environment["CREDENTIALS_DIRECTORY"].flatMap { $0.isEmpty ? nil : $0 },
          folders: [FilePath.absolute(FilePath.folder(of: path)), FilePath.absolute(".")]))
      if let root = checker.tree(environment) {
        let lines = CollectorKeys.table.read(root, into: &configuration, &checker)
        origins = lines.mapValues { (path, $0) }
      }
      faults += checker.sortedFaults
    }
    for flag in flags { take(flag, &configuration, &faults, &origins) }
    var checker = checker(of: path ?? "command line", FileSearch(credentials: nil, folders: []))
    let isReadable = !faults.contains { ["file", "YAML"].contains($0.key) }
    if isReadable { settle(configuration, origins, &checker) }
    faults += checker.faults
    guard faults.isEmpty else { throw ConfigurationFaults(faults) }
    return configuration
  }

  private func checker(of file: String, _ search: FileSearch) -> Checker {
    var checker = Checker(file: file, search: search, ceilings: .init(), keyRing: KeyRing())
    checker.collector = checks
    return checker
  }

  private func take(
    _ flag: Flag, _ configuration: inout CollectorConfiguration, _ faults: inout [ConfigurationFault],
    _ origins: inout [String: (file: String, line: Int)]
  ) {
    var checker = checker(of: flag.name, FileSearch(credentials: nil, folders: [FilePath.absolute(".")]))
    let node = flag.key.split(separator: ".").reversed().reduce(flag.node) { node, name in
      YAMLNode(line: 0, .mapping([YAMLEntry(key: String(name), line: 0, node: node)]))
    }
    let before = (configuration.keys, configuration.sealKeys)
    (configuration.keys, configuration.sealKeys) = ([], [])
    _ = CollectorKeys.table.read(node, into: &configuration, &checker)
    let own = configuration.keys
    configuration.keys = before.0.filter { key in !own.contains { $0.id == key.id } } + own
    configuration.sealKeys = before.1 + configuration.sealKeys
    origins[flag.key] = (flag.name, 0)
    faults += checker.faults
  }

  /// Faults that concern several keys.
  private func settle(
    _ configuration: CollectorConfiguration, _ origins: [String: (file: String, line: Int)], _ checker: inout Checker
  ) {
    func fault(_ key: String, beside given: String, _ message: String) {
      let origin = origins[given] ?? (checker.file, path == nil ? 0 : 1)
      checker.faults.append(ConfigurationFault(file: origin.file, line: origin.line, key: key, message: message))
    }
    for (key, isMissing, what) in [
      ("state", configuration.state == nil && origins["store"]?.file != path, "the folder of the database"),
      ("keys", configuration.keys.isEmpty, "a list of keys like {id: main, file: keys/main.key}"),
    ] where isMissing && origins[key] == nil {
      fault(key, beside: key, "is missing, must be \(what)")
    }
    if let listen = configuration.reader.listen, origins["readerTokenFile"] == nil, origins["operatorTokenFile"] == nil,
      !(HostAndPort.split(listen).map { HostAndPort.isLoopback($0.host) } ?? false)
    {
      fault(
        "reader.listen", beside: "reader.listen",
        "is \(listen.shownInFault), no loopback address, so it needs readerTokenFile; without it take 127.0.0.1:8081")
    }
    if origins["signingKey"] != nil, origins["remoteConfig"] == nil {
      fault("remoteConfig", beside: "signingKey", "is missing; signingKey signs what it serves")
    }
    for (given, missing) in [
      ("tls.certFile", "tls.keyFile"), ("tls.keyFile", "tls.certFile"), ("tls.clientCAFile", "tls.certFile"),
    ]
    where origins[given] != nil && origins[missing] == nil {
      fault(missing, beside: given, "is missing; \(given) needs it")
    }
    if let certificate = configuration.tls.certFile, let key = configuration.tls.keyFile,
      let why = checks.identityFault(certificate.content.bytes, key.content.bytes)
    {
      fault("tls.keyFile", beside: "tls.keyFile", "does not fit the certificate: \(why)")
    }
  }
}

extension CollectorLoader.Flag {
  fileprivate var node: YAMLNode {
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
