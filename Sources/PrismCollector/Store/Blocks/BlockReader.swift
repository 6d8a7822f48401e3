import PrismPacket
import PrismProtocol
import Synchronization

/// Answers all questions about reports from the blocks of a store: the one way for every store. A block is opened only where
/// its head says that it may have what is wanted. For one queue.
final class BlockReader {
  /// A page ends behind as many bytes of metas and payloads.
  private static let pageBytesMax = 4 * 1_048_576
  private static let headsPerStep = 256
  /// Reports of one window, about.
  private static let windowRows = 131_072

  private let damaged: DamagedBlocks
  private let cache = CommonCache()
  private var packer: RestPacker?
  /// The block that was opened last: pages that follow each other read it on.
  private var last: (head: BlockHead, opened: OpenedBlock)?

  init(_ damaged: DamagedBlocks = DamagedBlocks()) { self.damaged = damaged }

  // MARK: Blocks

  /// Opens the blocks that may have what a filter wants, in its order. A damaged block is passed over.
  /// - Parameter take: false ends it.
  func forEachBlock(
    _ filter: ReportFilter, of tables: StoreTables, _ take: (OpenedBlock) throws -> Bool
  ) throws {
    try forEachHead(filter, of: tables) { head in
      guard let opened = try open(head, of: tables) else { return true }
      return try take(opened)
    }
  }

  private func forEachHead(
    _ filter: ReportFilter, of tables: StoreTables, _ take: (BlockHead) throws -> Bool
  ) throws {
    var left = filter.ids
    while let ids = left {
      let heads = try tables.heads(ids, isNewestFirst: filter.isNewestFirst, limit: Self.headsPerStep)
      for head in heads where head.mayHave(filter) { guard try take(head) else { return } }
      guard heads.count == Self.headsPerStep, let end = heads.last else { return }
      if filter.isNewestFirst {
        left = ids.lowerBound < end.id ? ids.lowerBound...end.id - 1 : nil
      } else {
        left = end.last < ids.upperBound ? end.last + 1...ids.upperBound : nil
      }
    }
  }

  /// - Returns: nil: it is damaged, or gone.
  func open(_ head: BlockHead, of tables: StoreTables) throws -> OpenedBlock? {
    if let last, last.head == head { return last.opened }
    guard let body = try tables.body(of: head.id) else { return nil }
    last = nil
    guard let opened = opened(head, body) else {
      damaged.note(head)
      return nil
    }
    last = (head, opened)
    return opened
  }

  /// - Returns: nil: it is damaged.
  func opened(_ head: BlockHead, _ body: [UInt8]) -> OpenedBlock? {
    guard head.checksum(body) == head.sum else { return nil }
    do {
      let packer = try packer ?? RestPacker()
      self.packer = packer
      return try OpenedBlock(ReportBlock(unpacking: body, packer), cache)
    } catch { return nil }  // the checksum cannot tell of every fault
  }

  // MARK: Reports

  func report(_ id: Int64, of tables: StoreTables) throws -> StoredReport? {
    guard 1..<Int64.max ~= id else { return nil }  // no report has such an id
    var filter = ReportFilter()
    (filter.after, filter.before, filter.hasPayloads) = (id - 1, id + 1, true)
    return try page(filter, of: tables).first
  }

  func page(_ filter: ReportFilter, of tables: StoreTables) throws -> [StoredReport] {
    let metas = filter.metas.map { FieldQuestion($0) }
    var (reports, bytes) = ([StoredReport](), 0)
    try forEachBlock(filter, of: tables) { block in
      try block.forEach(filter, metas) { found in
        var report = block.stored(found)
        if filter.hasPayloads { try Self.addPayload(to: &report, of: tables) }
        reports.append(report)
        bytes += report.meta.count + (report.payload?.count ?? 0)
        return reports.count < filter.limit && bytes < Self.pageBytesMax
      }
    }
    return reports
  }

  private static func addPayload(
    to report: inout StoredReport, of tables: StoreTables
  ) throws {
    guard let bytes = report.payloadBytes else { return }
    report.payload = bytes == 0 ? [] : try tables.payload(of: report.id, received: report.receivedTime)
    guard report.payload == nil else { return }
    (report.isDamaged, report.meta) = (true, [])
  }

  // MARK: Counts

  /// Windows of ids, from the newest to the oldest, that hold every report of the filter.
  func windows(
    _ filter: ReportFilter, of tables: StoreTables
  ) throws -> [ClosedRange<Int64>] {
    var wanted = filter
    wanted.isNewestFirst = true
    guard let ids = filter.ids else { return [] }
    var (windows, open, rows): ([ClosedRange<Int64>], ClosedRange<Int64>?, Int) = ([], nil, 0)
    try forEachHead(wanted, of: tables) { head in
      let part = head.ids.clamped(to: ids)
      if let former = open, rows + head.rows > Self.windowRows {
        windows.append(former)
        (open, rows) = (nil, 0)
      }
      open = part.lowerBound...(open?.upperBound ?? part.upperBound)
      rows += head.rows
      return true
    }
    return windows + (open.map { [$0] } ?? [])
  }

  func counts(
    _ filter: ReportFilter, _ grouping: ReportGrouping, of tables: StoreTables
  ) throws -> [ReportCount] {
    try filled(ReportTally(filter, grouping), of: tables).counts
  }

  func numbers(
    _ filter: ReportFilter, path: [String], _ grouping: ReportGrouping, limit: Int, of tables: StoreTables
  ) throws -> [ReportNumber] {
    try filled(ReportTally(filter, grouping, path: path, limit: limit), of: tables).numbers
  }

  private func filled(
    _ tally: ReportTally, of tables: StoreTables
  ) throws -> ReportTally {
    try forEachBlock(tally.filter, of: tables) { tally.add($0) }
    return tally
  }

  /// When the first report from this id on was received; nil if there is no such report.
  func receivedTime(from id: Int64, of tables: StoreTables) throws -> Int64? {
    try tables.heads(id...Int64.max, isNewestFirst: false, limit: 1).first?.received.lowerBound
  }
}

/// The blocks of a store that are not what was written, for its warnings.
final class DamagedBlocks: Sendable {
  private static let namedMax = 8

  private let found = Mutex<[Int64: BlockHead]>([:])

  func note(_ head: BlockHead) { found.withLock { $0[head.id] = head } }

  /// In one line, with their ids; nil: no block is damaged.
  var warning: String? {
    let blocks = found.withLock { $0.values.sorted { $0.id < $1.id } }
    guard !blocks.isEmpty else { return nil }
    let names = blocks.prefix(Self.namedMax).map { "\($0.id) to \($0.last)" }.joined(separator: ", ")
    return
      "\(blocks.count) blocks of reports are damaged and left out, with \(blocks.reduce(0) { $0 + $1.rows }) reports: "
      + names + (blocks.count > Self.namedMax ? ", …" : "")
  }
}
