public import PrismConfig
public import PrismProtocol

/// The part of a snapshot that decides about reports, prepared for looking up; shared by all connections.
public final class AdmissionRules: Sendable {
  /// One namespace's part.
  public final class Namespace: Sendable {
    /// The namespace's name.
    public let name: NamespaceName
    /// The name as a request has it.
    let nameBytes: [UInt8]
    let isGather: Bool
    let allow: NamespaceConfiguration.Allow?
    let types: [ReportBatch.RowType]
    let typeBytes: [[UInt8]]
    /// Bytes of each type's `MONITOR_TYPE`.
    let monitorTypeBytes: [Int]
    private let indexByType: [String: Int]
    private let nearTypes: NearTypes
    /// The largest payload that it takes.
    public let payloadBytesMax: Int
    /// The most that it may hold on disk.
    public let quota: StoreQuota

    /// - Parameter requestBytesMax: what a request may hold in memory.
    init(_ configuration: NamespaceConfiguration, requestBytesMax: Int) {
      name = configuration.name
      nameBytes = Array(name.text.utf8)
      (isGather, allow) = (configuration.isGather, configuration.allow)
      types = configuration.monitorList.map(Self.rowType)
      typeBytes = types.map { Array($0.type.text.utf8) }
      let namespace = configuration.name
      monitorTypeBytes = types.map { MetaSplicing.monitorType($0.type, in: namespace).utf8.count }
      indexByType = Dictionary(
        types.enumerated().map { ($0.element.type.text, $0.offset) }, uniquingKeysWith: { first, _ in first })
      nearTypes = NearTypes(types.map(\.type.text))
      payloadBytesMax = min(configuration.maxBodyBytes, requestBytesMax - 2 * Limits.lineBytesMax)
      quota = StoreQuota(configuration)
    }

    private static func rowType(_ entry: MonitoredType) -> ReportBatch.RowType {
      let priority: Priority = entry.type == .appCrash ? .crash : entry.isRealtime ? .realtime : .rest
      return ReportBatch.RowType(type: entry.type, priority: priority, isRealtime: entry.isRealtime)
    }

    func allows(_ peer: ReportingPeer) -> Bool {
      guard let allow else { return true }
      if allow.userIDs.contains(peer.userID) || !allow.groupIDs.isDisjoint(with: peer.groupIDs) { return true }
      return peer.unit.map { unit in allow.units.contains { $0.matches(unit) } } ?? false
    }

    func index(ofType type: String) -> Int? { indexByType[type] }

    /// The refusal of a type that is not in the list; it names the known types nearest to it.
    func unknownType(_ type: String) -> Refusal {
      let known = nearTypes.nearest(to: type).joined(separator: ", ")
      let more = types.count > NearTypes.namedMax ? ", …" : ""
      return Refusal(.unknownType, "the type is not in the monitorList of \(name); known are \(known)\(more)")
    }
  }

  /// The snapshot's number.
  public let generation: Int
  private let namespaces: [String: Namespace]
  /// The keys that a meta may collide with.
  public let reserved: ReservedKeys
  /// `common` of the configuration.
  let configured: [String: String]
  /// `device.id`; nil: the host's.
  let deviceID: String?
  /// Of the namespace that takes the largest payload.
  public let payloadBytesMax: Int
  /// Of a request line with the largest payload in base64.
  public let lineBytesMax: Int
  /// Bytes that such a line holds with its payload decoded.
  public let lineMemoryBytes: Int
  /// The most that clients may make the daemon hold (`ingest.memoryMByte`).
  public let memoryBytesMax: Int
  /// The largest request with all that it becomes.
  public let requestBytesMax: Int

  /// Prepares the rules of `snapshot`.
  public init(_ snapshot: Snapshot) {
    generation = snapshot.generation
    memoryBytesMax = snapshot.daemon.ingest.memoryBytes
    let requestBytesMax = PendingBudget.requestBytesMax(bytesMax: memoryBytesMax)
    self.requestBytesMax = requestBytesMax
    namespaces = Dictionary(
      uniqueKeysWithValues: snapshot.namespaces.values.map {
        ($0.name.text, Namespace($0, requestBytesMax: requestBytesMax))
      })
    (configured, deviceID) = (snapshot.daemon.common, snapshot.daemon.deviceId)
    reserved = ReservedKeys(CommonInformation.reservedKeys(configured: configured))
    payloadBytesMax = namespaces.values.map(\.payloadBytesMax).max() ?? 0
    // Base64 of 4 bytes becomes 3: a line and its payload together hold 7 quarters of the line.
    let lineBytes = min(Limits.lineBytesMax + (payloadBytesMax + 2) / 3 * 4, requestBytesMax / 7 * 4)
    (lineBytesMax, lineMemoryBytes) = (lineBytes, lineBytes / 4 * 7)
  }

  /// The rules of a namespace; nil if it is not configured.
  public func namespace(_ name: String) -> Namespace? { namespaces[name] }
}
