public import PrismConfig
import PrismHTTP
import PrismPacket
import PrismProtocol

extension CollectorOptions {
  /// Takes over what was checked. - Returns: nil without a state folder, or with a key that `CollectorChecks` refuses.
  public init?(_ configuration: CollectorConfiguration) {
    guard let state = configuration.state else { return nil }
    self.init(state: state, keys: [:])
    listen = configuration.listen
    commitDeadline = configuration.commitDeadline
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
    takeReaders(configuration)
    takeLimits(configuration)
    if let certificate = configuration.tls.certFile, let key = configuration.tls.keyFile {
      tls = HTTPServerTLS(
        certificate: certificate.content.bytes, key: key.content.bytes,
        clientAuthorities: configuration.tls.clientCAFile?.content.bytes)
    }
    guard let folder = configuration.remoteConfig else { return }
    remote = Remote(folder: folder, signingKey: configuration.signingKey?.content)
    if remote == nil { return nil }
  }

  private mutating func takeReaders(_ configuration: CollectorConfiguration) {
    tokenFile = configuration.tokenFile?.path
    readerTokenFile = configuration.readerTokenFile?.path
    operatorTokenFile = configuration.operatorTokenFile?.path
    servesLocalReaders = configuration.reader.listen != nil && readerTokenFile == nil && operatorTokenFile == nil
    readerListen = configuration.reader.listen ?? readerListen
    readerHosts = configuration.reader.hosts
  }

  private mutating func takeLimits(_ configuration: CollectorConfiguration) {
    retentionDays = configuration.retentionDays
    memoryBytesMax = configuration.memoryBytes
    (connectionsMax, trustedProxies) = (configuration.connectionsMax, configuration.trustedProxies)
    outputs = configuration.outputs.map { OutputSettings($0) }
    outputLagBytes = configuration.outputLagBytes
    notices = configuration.notices
    onLag = LagPolicy(rawValue: configuration.onLag.rawValue) ?? .hold
    deviceLimits.packetsPerMinute = configuration.limits.devicePacketsPerMinute
    deviceLimits.bytesPerDay = configuration.limits.deviceBytesPerDay
    deviceLimits.allPacketsPerMinute = configuration.limits.packetsPerMinute
    deviceLimits.admittedPerSecond = configuration.limits.startDevicesPerSecond
    allowsPlainEnrollment = configuration.allowsPlainEnrollment
  }
}
