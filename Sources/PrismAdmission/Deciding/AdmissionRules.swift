public import PrismConfig
public import PrismProtocol
import Synchronization

/// The part of a snapshot that decides about reports, prepared for looking up; shared by all connections.
public final class AdmissionRules: Sendable {
  /// One namespace's part.
  public final class Namespace: Sendable {
    /// The namespace's name.
    public let name: NamespaceName
    let nameBytes: [UInt8]
    let isGather: Bool
    let allow: NamespaceConfiguration.Allow?
    private let types: ListedTypes
    /// Some type has a filter: to ask for one that is not there copies an empty one.
    let hasFilters: Bool
    /// nil without patterns.
    private let patternTypes: PatternTypes?
    private let nearTypes: NearTypes
    let payloads: PayloadRules
    /// An app that greets with another version than before has its older rows cleared; sessions of apps are counted.
    let follows: (appVersions: Bool, sessions: Bool)
    /// The most that it may hold on disk.
    public let quota: StoreQuota
    let records: [String: RecordTable]

    /// - Parameter requestBytesMax: what a request may hold in memory.
    init(
      _ configuration: NamespaceConfiguration, requestBytesMax: Int, _ tools: FilterTools, _ files: NamespaceFiles
    ) {
      name = configuration.name
      nameBytes = Array(name.text.utf8)
      (isGather, allow) = (configuration.isGather, configuration.allow)
      types = ListedTypes(configuration, tools)
      hasFilters = types.all.contains { $0.filter != nil }
      patternTypes = PatternTypes(configuration.monitorList)
      nearTypes = NearTypes(types.all.map(\.rowType.type.text), path: files.path(of: name))
      payloads = PayloadRules(
        bytesMax: min(configuration.maxBodyBytes, requestBytesMax - 2 * Limits.lineBytesMax),
        leavesLargeOnesOut: configuration.onLargePayload == .meta, sealKey: configuration.sealKey)
      quota = StoreQuota(configuration)
      records = Dictionary(configuration.tables.map { ($0.name.text, $0) }, uniquingKeysWith: { first, _ in first })
      follows = (
        configuration.followsAppVersions && configuration.isUpdateClear, configuration.countsHealth
      )
    }

    /// Names and patterns of the monitor list.
    var typeNames: [String] { types.all.map(\.rowType.type.text) }

    func allows(_ peer: ReportingPeer) -> Bool {
      guard let allow else { return true }
      if peer.userID.map(allow.userIDs.contains) ?? false || !allow.groupIDs.isDisjoint(with: peer.groupIDs) {
        return true
      }
      return peer.unit.map { unit in allow.units.contains { $0.matches(unit) } } ?? false
    }

    /// Whether `name` is that of an entry. A type that a pattern means has no entry of its name.
    func isName(_ name: ScannedString, of type: Int, in line: Span<UInt8>) -> Bool {
      type < types.count && name.equals(types.all[type].bytes, in: line)
    }

    func rowType(_ type: Int) -> ReportBatch.RowType {
      if type < types.count { return types.all[type].rowType }
      guard let known = patternTypes?[type - types.count] else { preconditionFailure("type \(type) is of other rules") }
      return known.rowType
    }

    func monitorTypeBytes(_ type: Int) -> Int {
      if type < types.count { return types.all[type].monitorTypeBytes }
      return MetaSplicing.monitorType(rowType(type).type, in: name).utf8.count
    }

    func filter(of type: Int) -> TypeFilter? { entry(of: type).filter }

    private func entry(of type: Int) -> ListedType {
      types.all[type < types.count ? type : patternTypes?[type - types.count]?.entry ?? 0]
    }

    func uploadsPayloads(of type: Int) -> Bool { entry(of: type).uploadsPayloads }

    /// The largest record that becomes a payload beside its cut meta. A filter may hide what the payload would show.
    func wholeBytesMax(of type: Int) -> Int {
      let entry = entry(of: type)
      return entry.uploadsPayloads && entry.filter == nil ? payloads.bytesMax : 0
    }

    /// - Returns: nil if neither a name nor a pattern of the monitor list means it, or too many types came by patterns.
    func index(ofType type: String, from userID: UInt32) -> Int? {
      types.indexByName[type] ?? patternTypes?.index(of: type, from: userID).map { types.count + $0 }
    }

    /// The refusal of a type that is not in the list; it names the known types nearest to it.
    func unknownType(_ type: String, from userID: UInt32) -> Refusal {
      if ReportType(type) == nil {
        return Refusal(
          .unknownType, "the type is no name: 1 to 128 of A-Z a-z 0-9 _ . : -, the first a letter or digit")
      }
      if patternTypes?.hasRoom(for: userID) == false {
        return Refusal(
          .unknownType,
          "\(name) took \(PatternTypes.typesMax) types by patterns of its monitorList, and takes no further ones of this user"
        )
      }
      return Refusal(
        .unknownType, "the type is not in the monitorList of \(name); \(nearTypes.advice(on: type))")
    }
  }

  /// The snapshot's number.
  public let generation: Int
  private let namespaces: [String: Namespace]
  public let files: NamespaceFiles
  /// The state that the filters of types share, for the rules after these.
  public let tools: FilterTools
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

  /// Prepares the rules of `snapshot`. - Parameter tools: the same ones as for the rules before these.
  /// - Parameter files: the same as for the rules before these.
  public init(
    _ snapshot: Snapshot, tools: FilterTools = FilterTools(), files: NamespaceFiles = NamespaceFiles()
  ) {
    generation = snapshot.generation
    (self.tools, self.files) = (tools, files)
    memoryBytesMax = snapshot.daemon.ingest.memoryBytes
    let requestBytesMax = PendingBudget.requestBytesMax(bytesMax: memoryBytesMax)
    self.requestBytesMax = requestBytesMax
    namespaces = Dictionary(
      uniqueKeysWithValues: snapshot.namespaces.values.map {
        ($0.name.text, Namespace($0, requestBytesMax: requestBytesMax, tools, files))
      })
    (configured, deviceID) = (snapshot.daemon.common, snapshot.daemon.deviceId)
    reserved = ReservedKeys(CommonInformation.reservedKeys(configured: configured))
    payloadBytesMax = namespaces.values.map(\.payloads.bytesMax).max() ?? 0
    // Base64 of 4 bytes becomes 3: a line and its payload together hold 7 quarters of the line.
    let lineBytes = min(Limits.lineBytesMax + (payloadBytesMax + 2) / 3 * 4, requestBytesMax / 7 * 4)
    (lineBytesMax, lineMemoryBytes) = (lineBytes, lineBytes / 4 * 7)
  }

  /// The rules of a namespace; nil if it is not configured, and can't be added.
  public func namespace(_ name: String) -> Namespace? { namespaces[name] ?? addedNamespace(name) }

  /// The namespaces that count the sessions of a program: those that it may report to.
  func sessionNamespaces(of peer: ReportingPeer) -> [NamespaceName] {
    namespaces.values.filter { $0.follows.sessions && $0.allows(peer) }.map(\.name).sorted()
  }

  /// The namespaces that count sessions.
  public var sessionNamespaces: [NamespaceName] { namespaces.values.filter(\.follows.sessions).map(\.name) }

  /// A new object each time, until the next snapshot has it: a session keeps its own.
  private func addedNamespace(_ text: String) -> Namespace? {
    NamespaceName(text).flatMap { files.configuration(adding: $0) }.map {
      Namespace($0, requestBytesMax: requestBytesMax, tools, files)
    }
  }
}

/// The monitor list of a namespace, prepared for looking up.
struct ListedTypes {
  let all: [ListedType]
  /// Of entries that are no patterns.
  let indexByName: [String: Int]

  var count: Int { all.count }

  init(_ configuration: NamespaceConfiguration, _ tools: FilterTools) {
    let types = configuration.monitorList.map { ListedType($0, in: configuration.name, tools) }
    indexByName = Dictionary(
      types.enumerated().filter { !$0.element.rowType.type.isPattern }
        .map { ($0.element.rowType.type.text, $0.offset) },
      uniquingKeysWith: { first, _ in first })
    all = types
  }
}

struct PayloadRules: Sendable {
  /// The largest payload that it takes.
  let bytesMax: Int
  /// A report with a larger one is stored without it.
  let leavesLargeOnesOut: Bool
  /// The public key to which payloads are sealed; nil: they are stored as they come.
  let sealKey: [UInt8]?
}

/// An entry of a monitor list, prepared for its reports.
struct ListedType: Sendable {
  let rowType: ReportBatch.RowType
  /// The name as a request has it; of a pattern, bytes that no request has.
  let bytes: [UInt8]
  let monitorTypeBytes: Int
  /// nil if it has no filter.
  let filter: TypeFilter?
  let uploadsPayloads: Bool

  init(_ entry: MonitoredType, in namespace: NamespaceName, _ tools: FilterTools) {
    rowType = ReportBatch.RowType(entry.type, entry)
    bytes = entry.type.isPattern ? [0xFF] : Array(entry.type.text.utf8)
    monitorTypeBytes = MetaSplicing.monitorType(entry.type, in: namespace).utf8.count
    uploadsPayloads = entry.isUploadPayload
    filter = TypeFilter(entry.filters, of: entry.type.text, in: namespace, tools)
  }
}

extension StoreQuota {
  /// The quota that the configuration of a namespace sets.
  public init(_ configuration: NamespaceConfiguration) {
    self.init(
      bytesMax: configuration.maxStoreBytes, userBytesMax: configuration.maxUserBytes ?? .max,
      evictsOldest: configuration.onFull == .evictOldest, ringBytesMax: configuration.ring.bytes,
      memoryBytesMax: configuration.ring.memoryBytes)
  }
}

/// The folder where namespaces are configured: refusals name its files, and `prismd --dev` adds files on demand. One for the
/// life of the daemon.
public final class NamespaceFiles: Sendable {
  /// Adds the file of a namespace, and returns its content; nil if that fails.
  public typealias Adding = @Sendable (NamespaceName) -> NamespaceConfiguration?

  private static let addedMax = 200

  private let folder: String
  private let add: Adding?
  private let added = Mutex<[NamespaceName: NamespaceConfiguration]>([:])

  /// - Parameter folder: absolute. - Parameter add: default: only people add namespaces.
  public init(folder: String = "namespaces.d", add: Adding? = nil) { (self.folder, self.add) = (folder, add) }

  func path(of name: NamespaceName) -> String { "\(folder)/\(name).yaml" }

  /// nil if the namespace can't be added. The next reload has it too.
  func configuration(adding name: NamespaceName) -> NamespaceConfiguration? {
    guard let add else { return nil }
    return added.withLock { added in
      if added[name] == nil, added.count < Self.addedMax { added[name] = add(name) }
      return added[name]
    }
  }

  /// The refusal of a namespace that is not configured, with what to do.
  func unknown(_ text: String) -> Refusal {
    guard let name = NamespaceName(text) else {
      return Refusal(.unknownNamespace, "the namespace is no name: 1 to 64 of A-Z a-z 0-9 _ -")
    }
    return Refusal(
      .unknownNamespace,
      "the namespace \(name) is not configured: write \(path(of: name)) with two lines, "
        + "`url: https://COLLECTOR` and `monitorList: [{type: \"*\"}]`")
  }
}
