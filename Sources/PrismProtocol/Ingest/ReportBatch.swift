/// Admitted reports of one connection and namespace on their way to a commit, in the order of their arrival.
///
/// All bytes stand in one arena and a row is a handful of integers, so that a report costs no allocation of its own.
public struct ReportBatch: Sendable {
  /// A type as its rows are stored.
  public struct RowType: Sendable, Equatable {
    public let type: ReportType
    public let lane: Lane
    /// A stored report of it asks for an upload of its namespace.
    public let isRealtime: Bool
    public init(type: ReportType, lane: Lane, isRealtime: Bool) {
      (self.type, self.lane, self.isRealtime) = (type, lane, isRealtime)
    }
  }

  public struct Row: Sendable {
    /// Index in `types`.
    public var type: Int
    /// Milliseconds since 1970.
    public var createdTime: Int64
    /// In the arena: the meta's members without braces, without any key that the context holds.
    public var body: Range<Int>
    /// The body has everything itself, and the batch's context is not spliced in.
    public var isSelfContained = false
    /// The body has its own `CREATE_TIME` (crashes only).
    public var hasOwnCreateTime = false
    /// In the arena; nil: no payload. Empty is a payload of zero bytes.
    public var payload: Range<Int>?
    /// In the arena: the id that the client gave; nil: the row's own id makes one.
    public var clientReportID: Range<Int>?
    /// Bytes of the merged meta.
    public var metaBytes: Int

    public init(type: Int, createdTime: Int64, body: Range<Int>, metaBytes: Int) {
      (self.type, self.createdTime, self.body, self.metaBytes) = (type, createdTime, body, metaBytes)
    }
  }

  public let namespace: NamespaceName
  /// The sender's, by the kernel's word (`SO_PEERCRED`): report ids and quotas are this user's own.
  public let userID: UInt32
  public let context: CommonContext
  /// The most bytes that the namespace may hold, and what happens past them.
  public let quota: StoreQuota
  public var types: [RowType] = []
  public var rows: [Row] = []
  public var arena: [UInt8] = []

  public init(namespace: NamespaceName, userID: UInt32, context: CommonContext, quota: StoreQuota) {
    (self.namespace, self.userID, self.context, self.quota) = (namespace, userID, context, quota)
  }
}

/// What a namespace may hold on disk.
public struct StoreQuota: Sendable, Equatable {
  public var bytesMax: Int
  /// The most that one user may hold of it; `Int.max`: as much as the namespace.
  public var userBytesMax: Int
  /// true: the oldest rows of the user who holds most make room, crashes last. false: `store_full`.
  public var evictsOldest: Bool

  public init(bytesMax: Int, userBytesMax: Int = .max, evictsOldest: Bool) {
    (self.bytesMax, self.userBytesMax, self.evictsOldest) = (bytesMax, userBytesMax, evictsOldest)
  }
}
