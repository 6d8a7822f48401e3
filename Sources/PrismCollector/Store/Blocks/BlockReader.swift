import Dispatch
import Glibc
import PrismOutputs
import PrismPacket
import Synchronization

/// Answers all questions about reports from the blocks of a store: the one way for every store. A block is opened only where
/// its head says that it may have what is wanted. For one queue.
final class BlockReader {
  /// A page ends behind as many bytes of metas and payloads. As many of packed blocks wait to be counted.
  private static let pageBytesMax = 4 * 1_048_576
  static let headsPerStep = 256
  /// Each has a block open, of some MiB.
  private static let openersMax = 4
  /// Blocks that are counted at a time.
  private static let countedMax = 256
  /// Reports of one window, about. A block whose head is enough counts as few.
  private static let (windowRows, headRows) = (262_144, 1024)

  private let damaged: DamagedBlocks
  /// One for each core.
  private let openers = (0..<max(1, min(openersMax, sysconf(Int32(_SC_NPROCESSORS_ONLN))))).map { _ in BlockOpener() }
  /// The block that was opened last: pages that follow each other read it on.
  private var last: (head: BlockHead, opened: OpenedBlock)?

  init(_ damaged: DamagedBlocks = DamagedBlocks()) { self.damaged = damaged }

  // MARK: Blocks

  /// The heads of blocks that may have what a filter wants, in its order. - Parameter take: false ends it.
  func forEachHead(_ filter: ReportFilter, of tables: StoreTables, _ take: (BlockHead) throws -> Bool) throws {
    var left = filter.ids
    while let ids = left {
      let heads = try tables.heads(ids, isNewestFirst: filter.isNewestFirst, limit: Self.headsPerStep, for: filter)
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
  func opened(_ head: BlockHead, _ body: [UInt8]) -> OpenedBlock? { openers[0].open(head, body) }

  // MARK: Reports

  func report(_ id: Int64, _ scope: Scope, of tables: StoreTables) throws -> StoredReport? {
    guard 1..<Int64.max ~= id else { return nil }  // no report has such an id
    var filter = ReportFilter(scope: scope)
    (filter.after, filter.before, filter.hasPayloads) = (id - 1, id + 1, true)
    return try page(filter, of: tables).first
  }

  func page(_ filter: ReportFilter, of tables: StoreTables) throws -> [StoredReport] {
    let metas = filter.metas.map { FieldQuestion($0) }
    var (reports, bytes) = ([StoredReport](), 0)
    func take(_ head: BlockHead) throws -> Bool {
      guard let block = try open(head, of: tables) else { return true }
      return try block.forEach(filter, metas) { found in
        var report = block.stored(found)
        if filter.hasPayloads { try Self.addPayload(to: &report, of: tables) }
        reports.append(report)
        bytes += report.meta.count + (report.payload?.count ?? 0)
        return reports.count < filter.limit && bytes < Self.pageBytesMax
      }
    }
    guard !filter.metas.isEmpty else {
      try forEachHead(filter, of: tables, take)
      return reports
    }
    // A look at few members, before all of them are made.
    var (looked, isWhole): ([BlockHead], Bool) = ([], false)
    try forEachHead(filter, of: tables) { head in
      looked.append(head)
      guard looked.count == (reports.isEmpty ? openers.count : 1) else { return true }
      isWhole = try !matching(looked, filter, of: tables).allSatisfy(take)
      looked = []
      return !isWhole
    }
    if !isWhole { _ = try matching(looked, filter, of: tables).allSatisfy(take) }
    return reports
  }

  /// The blocks that have a report that the filter wants.
  func matching(_ heads: [BlockHead], _ filter: ReportFilter, of tables: StoreTables) throws -> [BlockHead] {
    let all = ReportGrouping(bucketMilliseconds: ReportGrouping.wholeTime)
    let question = TallyQuestion(filter: filter, grouping: all)
    let (openers, last) = (openers, last?.head)
    let blocks = try heads.map { ($0, $0 == last ? nil : try tables.body(of: $0.id)) }
    let has = Mutex([Bool](repeating: true, count: heads.count))
    DispatchQueue.concurrentPerform(iterations: heads.count) { place in
      guard let body = blocks[place].1 else { return }
      let tally = CoreTally(question)
      // A damaged one is opened, and noted.
      guard tally.add(blocks[place].0, body, openers[place]) else { return }
      has.withLock { $0[place] = !tally.answer.counts.isEmpty }
    }
    return zip(heads, has.withLock { $0 }).filter(\.1).map(\.0)
  }

  private static func addPayload(to report: inout StoredReport, of tables: StoreTables) throws {
    guard let bytes = report.payloadBytes else { return }
    report.payload = bytes == 0 ? [] : try tables.payload(of: report.id, received: report.receivedTime)
    report.isDamaged = report.payload == nil
  }

  // MARK: Counts

  /// Windows of ids, from the newest to the oldest, that hold every report of the filter.
  /// - Parameter grouping: by which they are counted; nil: they are read.
  func windows(
    _ filter: ReportFilter, _ grouping: ReportGrouping?, of tables: StoreTables
  ) throws -> [ClosedRange<Int64>] {
    let isOfHeads = grouping?.isOfHeads(filter) ?? false
    var wanted = filter
    wanted.isNewestFirst = true
    guard let ids = filter.ids else { return [] }
    var (windows, open, rows): ([ClosedRange<Int64>], ClosedRange<Int64>?, Int) = ([], nil, 0)
    try forEachHead(wanted, of: tables) { head in
      let part = head.ids.clamped(to: ids)
      let work = isOfHeads && head.seemsCounted ? Self.headRows : head.rows
      if let former = open, rows + work > Self.windowRows {
        windows.append(former)
        (open, rows) = (nil, 0)
      }
      open = part.lowerBound...(open?.upperBound ?? part.upperBound)
      rows += work
      return true
    }
    return windows + (open.map { [$0] } ?? [])
  }

  func counts(_ filter: ReportFilter, _ grouping: ReportGrouping, of tables: StoreTables) throws -> [ReportCount] {
    try filled(TallyQuestion(filter: filter, grouping: grouping), of: tables).tally.counts
  }

  func numbers(
    _ filter: ReportFilter, path: [String], _ grouping: ReportGrouping, limit: Int, of tables: StoreTables
  ) throws -> (numbers: [ReportNumbers], from: Int64?) {
    let question = TallyQuestion(filter: filter, grouping: grouping, path: path, limit: limit)
    let (tally, from) = try filled(question, of: tables)
    return (tally.numbers, from)
  }

  /// Newest reports first. - Returns: with the first id that was counted, where the limit of the question ended it.
  private func filled(_ question: TallyQuestion, of tables: StoreTables) throws -> (tally: ReportTally, from: Int64?) {
    let (whole, tally) = (ReportTally(question), openers.map { _ in CoreTally(question) })
    var (waiting, bytes): ([(head: BlockHead, body: [UInt8])], Int) = ([], 0)
    var (newestFirst, from) = (question.filter, Int64?.none)
    newestFirst.isNewestFirst = true
    try forEachHead(newestFirst, of: tables) { head in
      if !damaged.has(head), whole.add(head) { return true }
      guard let body = try tables.body(of: head.id) else { return true }
      waiting.append((head, body))
      bytes += body.count
      guard waiting.count == Self.countedMax || bytes >= Self.pageBytesMax else { return true }
      count(waiting, to: tally)
      (waiting, bytes) = ([], 0)
      if question.path != nil, tally.reduce(0, { $0 + $1.size }) >= question.limit { from = head.id }
      return from == nil
    }
    count(waiting, to: tally)
    for part in tally { whole.add(part.answer) }
    return (whole, from)
  }

  /// Counts blocks on all cores. A damaged one is passed over. - Parameter tallies: one for each core.
  private func count(_ blocks: [(head: BlockHead, body: [UInt8])], to tallies: [CoreTally]) {
    let openers = openers
    let next = Atomic(0)
    let failed = Mutex([BlockHead]())
    DispatchQueue.concurrentPerform(iterations: min(openers.count, blocks.count)) { core in
      while true {
        let place = next.wrappingAdd(1, ordering: .relaxed).oldValue
        guard place < blocks.count else { return }
        let (head, body) = blocks[place]
        if !tallies[core].add(head, body, openers[core]) { failed.withLock { $0.append(head) } }
      }
    }
    for head in failed.withLock({ $0 }) { damaged.note(head) }
  }

  /// When the first report from this id on was received; nil if there is no such report.
  func first(from id: Int64, of tables: StoreTables) throws -> (id: Int64, receivedTime: Int64)? {
    try tables.heads(id...Int64.max, isNewestFirst: false, limit: 1).first.map {
      (max($0.id, id), $0.received.lowerBound)
    }
  }
}

private final class CoreTally: Sendable {
  private let tally: Mutex<ReportTally>

  init(_ question: TallyQuestion) { tally = Mutex(ReportTally(question)) }

  /// - Returns: false: it is damaged.
  func add(_ head: BlockHead, _ body: [UInt8], _ opener: BlockOpener) -> Bool {
    tally.withLock { tally in opener.read(head, body) { try tally.add($0) } != nil }
  }

  var size: Int { tally.withLock { $0.size } }
  var answer: ReportTally.Answer { tally.withLock { $0.answer } }
}

private final class BlockOpener: Sendable {
  private struct Tools {
    let cache = CommonCache()
    var packer: RestPacker?
  }

  private let tools = Mutex(Tools())

  /// - Returns: nil: it is damaged.
  func open(_ head: BlockHead, _ body: [UInt8]) -> OpenedBlock? {
    run(head, body) { tools, packer in try OpenedBlock(ReportBlock(unpacking: body, packer), tools.cache) }
  }

  /// - Returns: nil: it is damaged.
  func read(_ head: BlockHead, _ body: [UInt8], _ read: (BlockParts) throws -> Void) -> Void? {
    run(head, body) { _, packer in try read(BlockParts(head, body, packer)) }
  }

  private func run<Result>(
    _ head: BlockHead, _ body: [UInt8], _ open: (Tools, RestPacker) throws -> sending Result
  ) -> Result? {
    guard head.checksum(body) == head.sum else { return nil }
    return tools.withLock { tools in
      do {
        let packer = try tools.packer ?? RestPacker()
        tools.packer = packer
        return try open(tools, packer)
      } catch { return nil }  // the checksum cannot tell of every fault
    }
  }
}

/// The blocks of a store that are not what was written, for its warnings.
final class DamagedBlocks: Sendable {
  private static let namedMax = 8

  private let found = Mutex<[Int64: BlockHead]>([:])

  func note(_ head: BlockHead) { found.withLock { $0[head.id] = head } }
  func has(_ head: BlockHead) -> Bool { found.withLock { $0[head.id] == head } }

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
