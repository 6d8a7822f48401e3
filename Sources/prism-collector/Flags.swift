import Glibc
import PrismBase
import PrismCollector
import PrismHTTP
import PrismPacket
import PrismProtocol

/// The command line, and the files that it names.
struct Flags {
  static let options = [
    ArgumentOption(
      "--config", "PATH", "a file with listen, state, keys, tokens and tls (docs/collector.md); flags count first"),
    ArgumentOption("--listen", "ADDR:PORT", "where packets are taken (127.0.0.1:8080); port 0 takes any that is free"),
    ArgumentOption("--key", "ID=FILE", "a key of the senders: 32 or 64 hexadecimal digits, not readable by others"),
    ArgumentOption("--seal-key", "FILE", "a private key (prismctl keys new --seal) that opens sealed payloads"),
    ArgumentOption("--state", "DIR", "the folder of the database, made when it is missing"),
    ArgumentOption(
      "--store", "URI",
      """
      postgresql://USER@HOST/DATABASE instead of a database in DIR (docs/collector.md); the password
      is in PGPASSFILE
      """),
    ArgumentOption("--token-file", "FILE", "bearer tokens, one a line; every sender must give one"),
    ArgumentOption(
      "--reader-listen", "ADDR:PORT", "where reports are read, and the page is served (127.0.0.1:8081)"),
    ArgumentOption(
      "--reader-token-file", "FILE",
      "bearer tokens of readers; without any token --reader-listen serves this machine only"),
    ArgumentOption(
      "--operator-token-file", "FILE", "bearer tokens of operators, who read and change"),
    ArgumentOption(
      "--remote-config", "DIR",
      "namespace files that are served as remote configuration (docs/remote-configuration.md)"),
    ArgumentOption("--signing-key", "FILE", "an Ed25519 key, PEM, that signs it"),
    ArgumentOption("--print", nil, "each new report as one line of JSON on standard output"),
    ArgumentOption("--version", nil, "print the version"),
    ArgumentOption("--help", nil, "this text", shortName: "-h"),
  ]

  static let usage = """
    usage: prism-collector [--config PATH] [--listen ADDR:PORT] [--key ID=FILE …] [--state DIR] [--print]
           prism-collector check | migrate | device-key ID DEVICE  with the same flags
           prism-collector import DIR                              with the same flags
           prism-collector device COMMAND                          devices and their enrollment (device --help)
           prism-collector query OPTIONS                           prints stored reports (query --help)

      check                says every fault of the configuration, and starts nothing
      migrate              makes the tables in PostgreSQL, or brings them to this program's version
      import DIR           takes the packets that `prismctl carry` wrote into DIR, and writes their receipts into it
      device-key ID DEVICE prints the key that DEVICE has under the master key ID (64 hexadecimal digits)

    \(ArgumentOption.help(options, column: 23))

    Exit codes: 0, 1 not every packet was taken, 64 usage, 66 no such folder, 69 a resource is not there, 73 cannot create, 78 configuration (sysexits.h).
    """

  struct Fault: Error {
    var exitCode: Int32
    var message: String

    /// The exit code, once the message is said.
    var said: Int32 {
      StandardStreams.say("prism-collector: \(message)\n")
      return exitCode
    }
  }

  var options = CollectorOptions(state: "", keys: [:])
  var prints = false
  private var configPath: String?
  private var settings = CollectorSettings()

  /// - Throws: 64 for the command line, 78 for a configuration, key or certificate, 73 for the folder.
  init(_ arguments: Arguments) throws(Fault) {
    for option in arguments.given where !QueryCommand.isOwn(option.name) { try take(option.name, option.value ?? "") }
    if let configPath { try merge(configPath) }
    try resolve()
  }

  private mutating func take(_ flag: String, _ value: String) throws(Fault) {
    switch flag {
    case "--print": prints = true
    case "--config": configPath = value
    case "--listen": settings.listen = value
    case "--state": settings.state = value
    case "--store":
      if let fault = settings.takeStore(value) { throw Fault(exitCode: 64, message: "--store: \(fault)") }
    case "--seal-key": settings.sealKeys.append(value)
    case "--token-file": settings.tokenFile = value
    case "--reader-listen": settings.readerListen = value
    case "--reader-token-file": settings.readerTokenFile = value
    case "--operator-token-file": settings.operatorTokenFile = value
    case "--remote-config": settings.remoteConfig = value
    case "--signing-key": settings.signingKey = value
    default:
      let parts = value.split(separator: "=", maxSplits: 1).map(String.init)
      guard parts.count == 2 else { throw Fault(exitCode: 64, message: "--key: write ID=FILE") }
      settings.keys.append((parts[0], parts[1]))
    }
  }

  /// Applies the values of the file for flags that are not given.
  private mutating func merge(_ path: String) throws(Fault) {
    var file: CollectorSettings
    let bytes = try Self.read(path, isSecret: false)
    do throws(CollectorSettings.Faults) {
      file = try CollectorSettings(file: path, bytes: bytes)
    } catch { throw Fault(exitCode: 78, message: error.lines.joined(separator: "\n")) }
    file.locateFiles(besides: path, credentials: getenv("CREDENTIALS_DIRECTORY").map { String(cString: $0) })
    file.listen = settings.listen ?? file.listen
    file.state = settings.state ?? file.state
    file.store = settings.store ?? file.store
    file.tokenFile = settings.tokenFile ?? file.tokenFile
    file.readerListen = settings.readerListen ?? file.readerListen
    file.readerTokenFile = settings.readerTokenFile ?? file.readerTokenFile
    file.operatorTokenFile = settings.operatorTokenFile ?? file.operatorTokenFile
    file.remoteConfig = settings.remoteConfig ?? file.remoteConfig
    file.signingKey = settings.signingKey ?? file.signingKey
    file.keys += settings.keys
    file.sealKeys += settings.sealKeys
    settings = file
  }

  /// Opens what the settings name.
  private mutating func resolve() throws(Fault) {
    guard let state = settings.state, !settings.keys.isEmpty else {
      throw Fault(exitCode: 64, message: "a state folder and at least one key are needed\n\(Self.usage)")
    }
    options.state = state
    options.listen = settings.listen ?? options.listen
    try resolveStore()
    options.tokenFile = settings.tokenFile
    if let path = settings.tokenFile { _ = try Self.read(path, isSecret: true, bytesMax: 65_536) }
    try resolveReader()
    for (id, path) in settings.keys {
      guard let key = Hex.decode(try Self.read(path, isSecret: true).filter { $0 > UInt8(ascii: " ") }),
        [16, 32].contains(key.count)
      else { throw Fault(exitCode: 78, message: "\(path): a key file holds 32 or 64 hexadecimal digits") }
      options.keys[id] = Secret(key)
      options.keyRules[id] = settings.keyRules[id]
    }
    for path in settings.sealKeys {
      guard let key = SealingPrivateKey(pem: try Self.read(path, isSecret: true)) else {
        throw Fault(exitCode: 78, message: "\(path): is no X25519 key in PEM; prismctl keys new --seal makes one")
      }
      options.sealKeys.append(key)
    }
    if let certFile = settings.certFile, let keyFile = settings.keyFile {
      let authorities = try settings.clientCAFile.map { (path) throws(Fault) in try Self.read(path, isSecret: false) }
      options.tls = HTTPServerTLS(
        certificate: try Self.read(certFile, isSecret: false), key: try Self.read(keyFile, isSecret: true),
        clientAuthorities: authorities)
    }
    try resolveRemote()
    do throws(StateFolder.Fault) { try StateFolder.prepare(state) } catch {
      throw Fault(exitCode: error.isMode ? 78 : 73, message: "--state: \(error.description)")
    }
  }

  private mutating func resolveStore() throws(Fault) {
    guard let uri = settings.store else { return }
    if let path = settings.storePasswordFile { _ = try Self.read(path, isSecret: true) }
    do throws(PostgreSQLTarget.Fault) {
      options.store = try PostgreSQLTarget(uri: uri, passwordFile: settings.storePasswordFile)
    } catch { throw Fault(exitCode: 78, message: "store: \(error.description)") }
    if let milliseconds = settings.commitDeadlineMilliseconds { options.commitDeadline = .milliseconds(milliseconds) }
  }

  private mutating func resolveReader() throws(Fault) {
    if let fault = settings.readerFault { throw Fault(exitCode: 64, message: "--reader-listen: \(fault)") }
    for path in [settings.readerTokenFile, settings.operatorTokenFile].compactMap({ $0 }) {
      _ = try Self.read(path, isSecret: true, bytesMax: 65_536)
    }
    (options.readerTokenFile, options.operatorTokenFile) = (settings.readerTokenFile, settings.operatorTokenFile)
    options.servesLocalReaders =
      settings.readerListen != nil && settings.readerTokenFile == nil && settings.operatorTokenFile == nil
    options.readerListen = settings.readerListen ?? options.readerListen
    options.readerHosts = settings.readerHosts
    options.retentionDays = settings.retentionDays
    options.outputs = settings.outputs
    for fault in settings.outputs.compactMap(\.fileFault) { throw Fault(exitCode: 78, message: "outputs: \(fault)") }
    options.outputLagBytes = settings.outputLagBytes ?? options.outputLagBytes
    options.onLag = settings.onLag ?? options.onLag
    (options.deviceLimits, options.allowsPlainEnrollment) = (settings.deviceLimits, settings.allowsPlainEnrollment)
    options.memoryBytesMax = settings.memoryBytes ?? options.memoryBytesMax
  }

  private mutating func resolveRemote() throws(Fault) {
    guard let folder = settings.remoteConfig else {
      guard settings.signingKey == nil else {
        throw Fault(exitCode: 64, message: "--signing-key signs what --remote-config serves; give that too")
      }
      return
    }
    let key = try settings.signingKey.map { (path) throws(Fault) in Secret(try Self.read(path, isSecret: true)) }
    guard let remote = CollectorOptions.Remote(folder: folder, signingKey: key) else {
      throw Fault(
        exitCode: 78,
        message: "\(settings.signingKey ?? ""): is no Ed25519 key; openssl genpkey -algorithm ed25519 makes one")
    }
    options.remote = remote
  }

  private static func read(
    _ path: String, isSecret: Bool, bytesMax: Int = 262_144
  ) throws(Fault) -> [UInt8] {
    let file: (bytes: [UInt8], mode: UInt32)
    do throws(FileError) { file = try SmallFile.readWithMode(path, bytesMax: bytesMax) } catch {
      throw Fault(exitCode: 78, message: error.description)
    }
    guard !isSecret || file.mode & 0o004 == 0 else {
      throw Fault(exitCode: 78, message: "\(path): others may read it; run chmod 600 \(path)")
    }
    return file.bytes
  }
}
