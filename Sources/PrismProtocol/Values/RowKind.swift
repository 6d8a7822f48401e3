/// A kind of row: how its tables and packets are called, and what a packet of it holds. The store, the pipelines and the
/// collector go through `all` or `reports`, and ask for what a kind can. Rows of one kind are claimed, sent and settled apart
/// from rows of the other kinds.
public struct RowKind: Sendable {
  /// The blocks of a packet.
  public enum Layout: Sendable {
    /// One block: a JSON object for each row, separated by line feeds.
    case metas
    /// A frame: the block of metas, then one block for each row's payload. At most 255 rows.
    case metasAndPayloads
  }

  /// Its place in `all`: 0 and up, without a gap. That of reports is the value in the database's `kind` columns, and never
  /// changed.
  public let number: Int
  /// In logs, metrics, control messages, the endpoint and the content type: lower-case ASCII letters.
  public let name: String
  /// The name of a namespace's table is this letter and the namespace's number.
  public let tablePrefix: String
  /// The layout of its blocks.
  public let layout: Layout
  /// Its rows are reports in queues. They expire, are evicted, may be carried in files, and train dictionaries; a receiver must
  /// have a route for them. Else they are changes of records, which have tables and a schedule of their own.
  public let isReport: Bool
  /// Bytes of a line of its block at most.
  public let lineBytesMax: Int
  /// Bytes of the answer to a packet that are kept: the receipt of records names the id of each.
  public let answerBytesMax: Int

  public init(
    number: Int, name: String, tablePrefix: String, layout: Layout, isReport: Bool = true,
    lineBytesMax: Int = Limits.metaBytesMax, answerBytesMax: Int = 64 * 1024
  ) {
    (self.number, self.name, self.tablePrefix, self.layout) = (number, name, tablePrefix, layout)
    (self.isReport, self.lineBytesMax, self.answerBytesMax) = (isReport, lineBytesMax, answerBytesMax)
  }

  /// Metas without payloads.
  public static let meta = RowKind(number: 0, name: "meta", tablePrefix: "m", layout: .metas)
  /// Metas with a payload each.
  public static let payload = RowKind(number: 1, name: "payload", tablePrefix: "p", layout: .metasAndPayloads)
  /// The kinds of reports, by number.
  public static let reports = [meta, payload]
  /// Changes of records (docs/records.md).
  public static let records = RowKind(
    number: reports.count, name: "records", tablePrefix: "-", layout: .metas, isReport: false,
    lineBytesMax: Limits.lineBytesMax, answerBytesMax: 1024 * 1024)
  /// By number.
  public static let all = reports + [records]

  /// Each row has a payload.
  public var hasPayload: Bool { layout == .metasAndPayloads }
  /// Where a collector accepts packets of this kind.
  public var path: String { "/prism/\(name)" }
  /// The `Content-Type` of its packets.
  public var contentType: String { "application/vnd.prism.\(name)" }
  /// Rows of a packet; nil if only the configuration limits them.
  public var packetRowsMax: Int? { hasPayload ? Limits.packetPayloadCountMax : nil }

  /// The kind of reports with this number in a database. A number that no such kind has, which only a damaged row says, is taken for
  /// `payload`: the row's checksum refuses it.
  public init(numbered number: Int) { self = Self.reports.indices.contains(number) ? Self.reports[number] : .payload }

  /// - Returns: nil if no kind has this name.
  public init?(named name: String) {
    guard let kind = Self.all.first(where: { $0.name == name }) else { return nil }
    self = kind
  }
}

// The number says it all, and both are asked for every row.
extension RowKind: Hashable {
  public static func == (one: Self, other: Self) -> Bool { one.number == other.number }
  public func hash(into hasher: inout Hasher) { hasher.combine(number) }
}
