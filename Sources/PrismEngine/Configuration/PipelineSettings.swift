import PrismConfig
import PrismPacket
import PrismProtocol

/// All that one namespace's delivery works with, taken out of a snapshot.
struct PipelineSettings: Sendable, Equatable {
  var namespace: NamespaceName
  var deviceID: String
  /// nil: retired, its rows are kept and nothing is sent.
  let configuration: NamespaceConfiguration?
  /// nil if `keyId` names no key.
  var key: DaemonConfiguration.Key?
  /// The same key, as its blocks are counted.
  let countedKey: CountedKey?
  var collector: CollectorAddress?
  /// Types whose rows leave on unmetered networks only. Asked for with every packet.
  let wifiOnlyTypes: TypeSet
  /// The same of tables of records, by their names.
  let wifiOnlyTables: TypeSet
  /// Types whose payloads are uploaded.
  let payloadTypes: TypeSet
  /// Those of them that leave on metered networks too.
  let meteredPayloadTypes: TypeSet

  init(namespace: NamespaceName, snapshot: Snapshot, automaticDeviceID: String) {
    self.namespace = namespace
    deviceID = snapshot.daemon.deviceId ?? automaticDeviceID
    configuration = snapshot.namespaces[namespace]
    key = configuration?.keyId.flatMap { id in snapshot.daemon.keys.first { $0.id == id } }
    countedKey = key.flatMap { try? CountedKey(id: $0.id, secret: $0.secret) }
    collector = configuration?.url.map(CollectorAddress.init)
    let list = configuration?.monitorList ?? []
    wifiOnlyTypes = TypeSet(list.map { ($0.type, $0.onlyWifi) })
    let (tables, onlyWifi) = (configuration?.tables ?? [], configuration?.onlyWifi ?? false)
    wifiOnlyTables = TypeSet(Set(tables.filter { $0.onlyWifi ?? onlyWifi }.compactMap { ReportType($0.name.text) }))
    payloadTypes = TypeSet(list.map { ($0.type, $0.isUploadPayload) })
    meteredPayloadTypes = TypeSet(list.map { ($0.type, $0.isUploadPayload && !$0.onlyWifi) })
  }

  /// Of the packets of this kind.
  func wifiOnlyTypes(_ kind: RowKind) -> TypeSet { kind.isReport ? wifiOnlyTypes : wifiOnlyTables }

  /// The parameters with which a packet is encoded. If they change, the packet must be encoded again.
  /// - Parameter isMetered: traffic costs, so that bytes are worth more than the processor's time.
  func seal(isMetered: Bool) -> PacketSeal? {
    guard let configuration, let key else { return nil }
    return PacketSeal(
      deviceID: deviceID, cipher: configuration.cipher, keyID: key.id, key: key.secret,
      compression: isMetered ? .small : .fast)
  }
}

/// The sender of a packet, its compression and its encryption.
struct PacketSeal: Sendable, Equatable {
  var deviceID: String
  var cipher: Cipher
  var keyID: String
  var key: Secret
  /// `zstd` only for a receiver that announced it.
  var encoding = PacketEncoding.gzip
  var compression: Compression
  /// Payloads that do not shrink are compressed, too.
  var compressesAll = false
  /// `columns` only for a receiver that announced them.
  var form = PacketForm.rows
  /// For a receiver that takes it, with `zstd`.
  var dictionary: CompressionDictionary?

  /// With the device of a stream's packets, and the best encoding and form that their receiver takes.
  /// - Parameter receiver: nil: one that may take gzip only.
  func from(_ sender: StreamIdentity?, to receiver: ReceiverFeatures?) -> PacketSeal {
    var seal = self
    if let sender { seal.deviceID = sender.deviceID }
    seal.compressesAll = receiver == nil
    if receiver?.takesZstd == true { seal.encoding = .zstd }
    if receiver?.takesColumns == true { seal.form = .columns }
    if let dictionary, receiver?.takes(dictionary) != true { seal.dictionary = nil }
    return seal
  }

  func with(_ dictionary: CompressionDictionary?) -> PacketSeal {
    var seal = self
    seal.dictionary = dictionary
    return seal
  }
}
