/// Admitted reports of one connection and namespace on their way to a commit, in the order of their arrival.
///
/// All bytes are in one arena and a row is a few integers, so a report needs no allocation of its own.
public struct ReportBatch: Sendable {
  /// A type as its rows are stored.
  public struct RowType: Sendable, Equatable {
    /// The name of the type.
    public let type: ReportType
    /// The order in which rows of this type leave.
    public let priority: Priority
    /// A stored report of it asks for an upload of its namespace.
    public let isRealtime: Bool
    /// Its rows stay in the ring.
    public var isKept: Bool { priority == .kept }
    /// The ring is the one in memory.
    public let isInMemory: Bool

    public init(type: ReportType, priority: Priority, isRealtime: Bool, isInMemory: Bool = false) {
      (self.type, self.priority, self.isRealtime, self.isInMemory) = (type, priority, isRealtime, isInMemory)
    }
  }

  /// A report of the batch: ranges of the arena, and its times.
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
    /// The report had a payload that is not stored.
    public var isPayloadLeftOut = false
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

  /// The batches of a run, which follow each other in one commit.
  public struct Run: Sendable {
    /// The ids of the rows.
    public let ids: ReportIDRun
    /// This batch and those behind it.
    public let batchCount: Int
    /// The batches have a row for each id.
    public let isWhole: Bool

    public init(_ ids: ReportIDRun, batchCount: Int, isWhole: Bool) {
      (self.ids, self.batchCount, self.isWhole) = (ids, batchCount, isWhole)
    }
  }

  /// The decision of a filter of the row's type. The commit carries it out, so that it is counted with it.
  public enum Mark: Sendable, Equatable {
    /// The row is counted, and not stored.
    case sampledOut
    /// The row is counted on an equal one that still waits, or else begins to count.
    case repeatable(Repeat)
  }

  /// The hash by which a report is equal to others (`collapse`), and its time.
  public struct Repeat: Sendable, Equatable {
    /// Bytes that counting may add to a meta.
    public static let membersBytesMax = 96

    /// A hash of 128 bits, of the type and the fields.
    public var high: UInt64, low: UInt64
    /// Milliseconds since 1970.
    public var arrivedTime: Int64
    /// How long the first one counts others.
    public var windowMilliseconds: Int64

    public init(high: UInt64, low: UInt64, arrivedTime: Int64, windowMilliseconds: Int64) {
      (self.high, self.low) = (high, low)
      (self.arrivedTime, self.windowMilliseconds) = (arrivedTime, windowMilliseconds)
    }
  }

  /// The namespace of all rows.
  public let namespace: NamespaceName
  /// The sender's, by the kernel's word (`SO_PEERCRED`): report ids and quotas are this user's own.
  public let userID: UInt32
  /// The common information of all rows.
  public let context: CommonContext
  /// The most bytes that the namespace may hold, and what happens past them.
  public let quota: StoreQuota
  /// The public key to which payloads are sealed before they are stored; nil: they are stored as they are. Each row with a
  /// payload has a `clientReportID` then.
  public let sealKey: [UInt8]?
  /// The app whose older rows are to be cleared when its version changes (`appVersion: auto`); nil: rows stay.
  public let app: AppVersion?
  /// Of the first batch of a run; nil: each row is known by its own id.
  public var run: Run?
  /// The types of the rows; a row refers to one by its index.
  public var types: [RowType] = []
  /// The reports in the order in which they arrived.
  public var rows: [Row] = []
  /// Rows of it may go to the ring.
  public var hasKeptTypes: Bool { types.contains(where: \.isKept) }
  /// The same of one of the two rings.
  public func hasKeptTypes(inMemory: Bool) -> Bool { types.contains { $0.isKept && $0.isInMemory == inMemory } }
  /// Rows of it may leave by themselves.
  public var leaves: Bool { !types.allSatisfy(\.isKept) }
  /// Whether the row goes to the ring.
  public func isKept(_ row: Row) -> Bool { types[row.type].isKept }
  /// Of rows that a filter marked, by their index, ascending; empty in the ordinary case.
  public var marks: [(row: Int, mark: Mark)] = []
  /// The bytes of all rows.
  public var arena: [UInt8] = []
  /// A request about records, in a batch without rows: so it is answered in its place among the reports.
  public var record: RecordRequest?

  public init(
    namespace: NamespaceName, userID: UInt32, context: CommonContext, quota: StoreQuota, sealKey: [UInt8]? = nil,
    app: AppVersion? = nil
  ) {
    (self.namespace, self.userID, self.context, self.quota) = (namespace, userID, context, quota)
    (self.sealKey, self.app) = (sealKey, app)
  }
}

/// The quota of a namespace.
public struct StoreQuota: Sendable, Equatable {
  /// The most bytes of the namespace, `maxStoreMByte`.
  public var bytesMax: Int
  /// The most that one user may hold of it; `Int.max`: as much as the namespace.
  public var userBytesMax: Int
  /// true: the oldest rows of the user who holds most make room, crashes last. false: `store_full`.
  public var evictsOldest: Bool
  /// The most bytes of the namespace's ring, beside `bytesMax`, and of the one in memory.
  public var ringBytesMax: Int, memoryBytesMax: Int

  public init(
    bytesMax: Int, userBytesMax: Int = .max, evictsOldest: Bool, ringBytesMax: Int = 64 << 20,
    memoryBytesMax: Int = 16 << 20
  ) {
    (self.bytesMax, self.userBytesMax, self.evictsOldest) = (bytesMax, userBytesMax, evictsOldest)
    (self.ringBytesMax, self.memoryBytesMax) = (ringBytesMax, memoryBytesMax)
  }
}

/// Reports that their sender hands over again, all of them, until it has an answer: their ids are `prefix` and a number.
///
/// Where one commit stores all of them, the store remembers the run in place of an id for each. Else it remembers each id,
/// and that it did. So a run is stored once in any case.
public struct ReportIDRun: Sendable, Hashable {
  /// Ends with another character than a digit.
  public let prefix: ReportID
  /// The first number.
  public let first: Int
  /// The numbers from `first` on.
  public let count: Int

  /// The same reports make the same run whenever they are handed over. - Returns: nil if an id would be too long.
  public init?(_ prefix: ReportID, first: Int, count: Int) {
    guard prefix.numbered(first + count) != nil else { return nil }
    (self.prefix, self.first, self.count) = (prefix, first, count)
  }
}
