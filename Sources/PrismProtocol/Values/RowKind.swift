/// A kind of row: how its tables and packets are called, and what a packet of it holds. The store, the pipelines and the
/// collector go through `all`. Rows of one kind are claimed, sent and settled apart from rows of the other kinds.
public struct RowKind: Sendable {
  /// The blocks of a packet.
  public enum Layout: Sendable {
    /// One block: a JSON object for each row, separated by line feeds.
    case metas
    /// A frame: the block of metas, then one block for each row's payload. At most 255 rows.
    case metasAndPayloads
  }

  /// The value in the database's `kind` columns, and an index in memory: 0 and up, without a gap. Never changed.
  public let number: Int
  /// In logs, metrics, control messages, the endpoint and the content type: lower-case ASCII letters.
  public let name: String
  /// The name of a namespace's table is this letter and the namespace's number.
  public let tablePrefix: String
  /// The layout of its blocks.
  public let layout: Layout

  public init(number: Int, name: String, tablePrefix: String, layout: Layout) {
    (self.number, self.name, self.tablePrefix, self.layout) = (number, name, tablePrefix, layout)
  }

  /// Metas without payloads.
  public static let meta = RowKind(number: 0, name: "meta", tablePrefix: "m", layout: .metas)
  /// Metas with a payload each.
  public static let payload = RowKind(number: 1, name: "payload", tablePrefix: "p", layout: .metasAndPayloads)

  /// Changes of records: they are delivered as rows are, and kept in tables of their own (docs/records.md).
  public static let records = RowKind(number: 7, name: "records", tablePrefix: "-", layout: .metas)

  /// The kinds of reports, by number.
  public static let all = [meta, payload]
  /// The kinds of packets.
  public static let delivered = all + [records]

  /// Each row has a payload.
  public var hasPayload: Bool { layout == .metasAndPayloads }
  /// Bytes of a line of its block at most.
  public var lineBytesMax: Int { self == .records ? Limits.lineBytesMax : Limits.metaBytesMax }
  /// Where a collector takes packets of this kind.
  public var path: String { "/prism/\(name)" }
  /// The `Content-Type` of its packets.
  public var contentType: String { "application/vnd.prism.\(name)" }
  /// Rows of a packet; nil if only the configuration limits them.
  public var packetRowsMax: Int? { hasPayload ? Limits.packetPayloadCountMax : nil }

  /// The kind with this number in a database. A number that no kind has, which only a damaged row says, is taken for
  /// `payload`: the row's checksum refuses it.
  public init(numbered number: Int) { self = Self.all.indices.contains(number) ? Self.all[number] : .payload }

  /// - Returns: nil if no kind has this name.
  public init?(named name: String) {
    guard let kind = Self.delivered.first(where: { $0.name == name }) else { return nil }
    self = kind
  }
}

// The number says it all, and both are asked for every row.
extension RowKind: Hashable {
  public static func == (one: Self, other: Self) -> Bool { one.number == other.number }
  public func hash(into hasher: inout Hasher) { hasher.combine(number) }
}
