public import PrismBase
public import PrismProtocol
import Synchronization

/// Which waiting rows the next packet of a namespace and kind may take, and how many.
public struct Claim: Sendable {
  /// Types that may leave now. Rows of other types stay where they are and cost a claim nothing.
  public enum TypeFilter: Sendable, Equatable {
    case all
    case only(TypeSet)
    case except(TypeSet)
  }

  /// The namespace of the rows.
  public var namespace: NamespaceName
  /// The kind of the rows.
  public var kind: RowKind
  /// The types that the packet may take.
  public var types: TypeFilter
  /// Rows of the packet at most.
  public var itemsMax: Int
  /// In sum of the rows' `size`; a single row over it goes alone.
  public var bytesMax: Int
  /// The joined metas' plaintext (payload packets: the frame's 2-byte length bounds it).
  public var metaBytesMax: Int
  /// The id that the packet gets, if any row is found.
  public var packetID: PacketID
  /// `created` of the packet.
  public var unixMilliseconds: Int64
  /// For the kind `records`, which has no types.
  public var records: RecordClaim?
  /// Where the lines of the packet may lie; nil: in new memory.
  public var spare: SpareLines?

  public init(
    namespace: NamespaceName, kind: RowKind, types: TypeFilter, itemsMax: Int, bytesMax: Int, metaBytesMax: Int,
    packetID: PacketID, unixMilliseconds: Int64
  ) {
    (self.namespace, self.kind, self.types) = (namespace, kind, types)
    (self.itemsMax, self.bytesMax, self.metaBytesMax) = (itemsMax, bytesMax, metaBytesMax)
    (self.packetID, self.unixMilliseconds) = (packetID, unixMilliseconds)
  }
}

/// Memory of lines that are packed, for those of the next packet: in new memory 4 MiB of lines cost 1,000 page faults.
public final class SpareLines: Sendable {
  private let lines = Mutex<[UInt8]>([])

  public init() {}

  /// Keeps the larger one of two.
  public func keep(_ packed: [UInt8]) { lines.withLock { if packed.capacity > $0.capacity { $0 = packed } } }
  public func drop() { lines.withLock { $0 = [] } }

  func take() -> [UInt8] {
    var taken: [UInt8] = []
    lines.withLock { swap(&$0, &taken) }
    return taken
  }
}

/// A packet and the rows that belong to it, in their order, ready to be encoded.
public struct ClaimedPacket: Sendable {
  /// The id, the same in each attempt.
  public var id: PacketID
  /// The namespace of the rows.
  public var namespace: NamespaceName
  /// The kind of the rows.
  public var kind: RowKind
  /// The value of `Prism-Ledger`: the ledger when the packet was made.
  public var ledgerHeader: String
  /// The lines of the meta block, joined with a line feed: rows, and what they have in common (docs/packet.md, "Common
  /// information"). Rows that failed their checksum are not in it: they were quarantined in the same transaction and
  /// counted `corrupt`.
  public var metas: [UInt8]
  /// Rows in the packet.
  public var itemCount: Int
  /// One a row for the kind `payload`; empty for `meta`.
  public var payloads: [[UInt8]]
  /// How the clock was set when the rows were read: their times are by this setting (docs/packet.md, "Clocks").
  public var clock: ClockSetting

  public init(
    id: PacketID, namespace: NamespaceName, kind: RowKind, ledgerHeader: String, metas: [UInt8], itemCount: Int,
    payloads: [[UInt8]], clock: ClockSetting
  ) {
    (self.id, self.namespace, self.kind, self.ledgerHeader) = (id, namespace, kind, ledgerHeader)
    (self.metas, self.itemCount, self.payloads, self.clock) = (metas, itemCount, payloads, clock)
  }
}

/// A packet whose rows are claimed, without them.
public struct PacketInFlight: Sendable, Equatable {
  /// The id of the packet.
  public var id: PacketID
  /// Rows in the packet.
  public var itemCount: Int
  /// nil: under a clock of which is not known whether it was right.
  public var claimed: ClaimTime?
  public init(id: PacketID, itemCount: Int, claimed: ClaimTime? = nil) {
    (self.id, self.itemCount, self.claimed) = (id, itemCount, claimed)
  }
}

/// When a packet was claimed, by a clock that counts.
public enum ClaimTime: Sendable, Equatable {
  /// In this boot.
  case uptime(Duration)
  /// In an earlier boot, by its clock, which was set. Milliseconds since 1970.
  case unixMilliseconds(Int64)
}

/// Which waiting changes of records the next packet may take.
public struct RecordClaim: Sendable {
  /// The tables whose changes may leave now.
  public var tables: [RecordTable]
  /// Changes that began to wait later are left for the next synchronization (`RecordReading.bound`).
  public var bound: Int64
  public init(tables: [RecordTable], bound: Int64) { (self.tables, self.bound) = (tables, bound) }
}
