import PrismBase
public import PrismConfig
public import PrismHTTP
import PrismOutputs
public import PrismPacket
public import PrismProtocol
public import PrismSQL

/// How a collector is started: its configuration as it is, with what is made of a part of it.
@dynamicMemberLookup
public struct CollectorOptions: Sendable {
  private var configuration = CollectorConfiguration()

  /// A value of the configuration, such as `retentionDays`.
  public subscript<Value>(dynamicMember path: WritableKeyPath<CollectorConfiguration, Value>) -> Value {
    get { configuration[keyPath: path] }
    set { configuration[keyPath: path] = newValue }
  }

  /// The folder of the database; it exists.
  public var state: String
  /// Where packets and reports rest; nil: in SQLite, in `state`.
  public var store: PostgreSQLTarget?
  /// By id.
  public var keys: [String: Secret]
  /// By id; of keys that are not for all devices and namespaces alike.
  public var keyRules: [String: KeyRule] = [:]
  /// They open payloads that devices sealed to them; without one such a payload is stored sealed.
  public var sealKeys: [SealingPrivateKey] = []
  /// A file of bearer tokens, one a line, of which every sender must give one; nil: no token is needed.
  public var tokenFile: String?
  /// Where holders of a reader's token read, `ADDRESS:PORT`.
  public var readerListen = "127.0.0.1:8081"
  /// A file of bearer tokens of readers; nil: no reader has one. Without any token, and
  /// without `servesLocalReaders`, reports are read over the Unix socket `reader.sock` in `state` only.
  public var readerTokenFile: String?
  /// A file of bearer tokens of operators, who read and change.
  public var operatorTokenFile: String?
  /// Without tokens of readers and operators: the reader's address is served to this machine. It must be a loopback address.
  public var servesLocalReaders = false
  /// Readers of this machine are operators: for trying.
  public var isTrial = false
  /// nil: plain HTTP.
  public var tls: HTTPServerTLS?
  /// Takes each new report as one line of JSON.
  public var print: (@Sendable (String) -> Void)?
  /// nil: remote configuration is not served.
  public var remote: Remote?
  /// A packet's body.
  public var bodyBytesMax = 8 * 1_048_576

  /// Of debug files.
  package var symbolFolder: SymbolFolder { SymbolFolder(FilePath.joined(state, "symbols")) }

  /// Programs that are missing for what is set or stored.
  package var symbolWarnings: [String] {
    let isMissing = configuration.debuginfod != nil && !DebugFileSource.isInstalled
    return [
      symbolFolder.warning,
      isMissing ? "\(DebugFileSource.program) is missing, so no debug file comes: install debuginfod" : nil,
    ].compactMap(\.self)
  }

  /// The remote configuration that `GET /prism/config` serves.
  public struct Remote: Sendable {
    /// Of namespace files.
    public let folder: String
    /// Signs the answers; nil: they are not signed.
    let key: SigningKey?

    /// - Parameter signingKey: PEM, as `openssl genpkey -algorithm ed25519` writes it.
    /// - Returns: nil where that is no such key.
    public init?(folder: String, signingKey: Secret? = nil) {
      self.folder = folder
      key = signingKey.flatMap { SigningKey(pem: $0.bytes) }
      if signingKey != nil && key == nil { return nil }
    }
  }

  /// The defaults, with what has no default.
  public init(state: String, keys: [String: Secret]) { (self.state, self.keys) = (state, keys) }

  /// Takes over what was checked. - Returns: nil without a state folder, or with a key that `CollectorChecks` refuses.
  public init?(_ configuration: CollectorConfiguration) {
    guard let state = configuration.state else { return nil }
    self.init(state: state, keys: [:])
    self.configuration = configuration
    if let uri = configuration.store {
      guard let target = try? PostgreSQLTarget(uri: uri, passwordFile: configuration.storePasswordFile?.path) else {
        return nil
      }
      store = target
    }
    for key in configuration.keys {
      keys[key.id] = key.secret
      var rule = KeyRule()
      (rule.derivesForDevice, rule.namespaces) = (key.derivesForDevice, key.namespaces)
      if rule != KeyRule() { keyRules[key.id] = rule }
    }
    sealKeys = configuration.sealKeys.compactMap { SealingPrivateKey(pem: $0.content.bytes) }
    guard sealKeys.count == configuration.sealKeys.count else { return nil }
    (tokenFile, readerTokenFile) = (configuration.tokenFile?.path, configuration.readerTokenFile?.path)
    operatorTokenFile = configuration.operatorTokenFile?.path
    servesLocalReaders = configuration.reader.listen != nil && readerTokenFile == nil && operatorTokenFile == nil
    readerListen = configuration.reader.listen ?? readerListen
    if let certificate = configuration.tls.certFile, let key = configuration.tls.keyFile {
      tls = HTTPServerTLS(
        certificate: certificate.content.bytes, key: key.content.bytes,
        clientAuthorities: configuration.tls.clientCAFile?.content.bytes)
    }
    guard let folder = configuration.remoteConfig else { return }
    remote = Remote(folder: folder, signingKey: configuration.signingKey?.content)
    if remote == nil { return nil }
  }
}

extension CollectorChecks {
  /// By libpq, OpenSSL and librdkafka.
  public static let libraries = CollectorChecks(
    storeFault: { uri in
      do throws(PostgreSQLTarget.Fault) { _ = try PostgreSQLTarget(uri: uri) } catch { return error.description }
      return nil
    },
    sealKeyFault: { pem in
      SealingPrivateKey(pem: pem) == nil ? "holds no X25519 key in PEM; prismctl keys new --seal makes one" : nil
    },
    signingKeyFault: { pem in
      SigningKey(pem: pem) == nil ? "holds no Ed25519 key in PEM; openssl genpkey -algorithm ed25519 makes one" : nil
    },
    webKeysFault: { json in WebKeys(parsing: json) == nil ? WebKeys.fault : nil },
    propertiesFault: CollectorConfiguration.Output.propertiesFault, identityFault: ClientIdentity.fault)
}
