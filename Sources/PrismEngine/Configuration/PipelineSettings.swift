import PrismConfig
import PrismPacket
import PrismProtocol

/// All that one namespace's delivery works with, taken out of a snapshot.
struct PipelineSettings: Sendable, Equatable {
  var namespace: NamespaceName
  var deviceID: String
  /// nil: retired, its rows are kept and nothing is sent.
  let configuration: NamespaceConfiguration?
  /// nil: none is configured under the namespace's `keyId`.
  var key: DaemonConfiguration.Key?
  var collector: CollectorAddress?
  /// Types whose rows leave on unmetered networks only. Asked for with every packet.
  let wifiOnlyTypes: Set<ReportType>
  /// Types whose payloads are uploaded.
  let payloadTypes: Set<ReportType>

  init(namespace: NamespaceName, snapshot: Snapshot, automaticDeviceID: String) {
    self.namespace = namespace
    deviceID = snapshot.daemon.deviceId ?? automaticDeviceID
    configuration = snapshot.namespaces[namespace]
    key = configuration?.keyId.flatMap { id in snapshot.daemon.keys.first { $0.id == id } }
    collector = configuration?.url.map(CollectorAddress.init)
    wifiOnlyTypes = Set(configuration?.monitorList.filter(\.onlyWifi).map(\.type) ?? [])
    payloadTypes = Set(configuration?.monitorList.filter(\.isUploadPayload).map(\.type) ?? [])
  }

  /// What a packet is encoded with: another seal means that it must be encoded anew.
  /// - Parameter isMetered: traffic costs, so that bytes are worth more than the processor's time.
  func seal(isMetered: Bool) -> PacketSeal? {
    guard let configuration, let key else { return nil }
    return PacketSeal(
      deviceID: deviceID, cipher: configuration.cipher, keyID: key.id, key: key.secret,
      compression: isMetered ? .small : .fast)
  }
}

/// Whom a packet is from, and how it is compressed and encrypted.
struct PacketSeal: Sendable, Equatable {
  var deviceID: String
  var cipher: Cipher
  var keyID: String
  var key: Secret
  var compression: Compression
}
