import PrismPacket
import PrismProtocol

/// Blocks that follow each other become one: its ids, packets and lines are theirs, in their order.
struct BlockMerge {
  /// The next step of a store.
  enum Result: Sendable {
    /// The blocks behind the id are too few yet.
    case wait
    /// Blocks up to this id stay as they are.
    case stays(upTo: Int64)
    case merged(former: [BlockHead], head: BlockHead, body: [UInt8])
  }

  /// Of one merge.
  static let blocksMax = 4096

  /// Blocks whose reports are merged now, by their heads.
  private(set) var heads: [BlockHead] = []
  private var (rows, textBytes) = (0, 0)

  /// Adds the next block. - Returns: false: it has no room, so those before it are one block now.
  mutating func add(_ head: BlockHead) -> Bool {
    guard
      heads.isEmpty
        || rows + head.rows <= ReportBlock.rowsMax && textBytes + head.textBytes <= ReportBlock.textBytesMax
    else { return false }
    heads.append(head)
    (rows, textBytes) = (rows + head.rows, textBytes + head.textBytes)
    return true
  }

  /// One block of several. Common information that goes on is written once.
  fileprivate static func block(of blocks: [OpenedBlock]) -> ReportBlock {
    var (text, common): ([UInt8], ArraySlice<UInt8>) = ([], [])
    for metas in blocks.map(\.metas) {
      guard let first = metas.rows.first else { continue }
      let begin = commonLine(metas, before: 0) ?? []
      if !text.isEmpty { text.append(UInt8(ascii: "\n")) }
      if begin != common {
        text += begin.isEmpty ? noCommon : begin
        text.append(UInt8(ascii: "\n"))
      }
      text += metas.text[first.line.lowerBound...]
      common = (0...metas.rows.count).reversed().lazy.compactMap { commonLine(metas, before: $0) }.first ?? []
      if common == noCommon { common = [] }
    }
    return ReportBlock(runs: joined(blocks.flatMap(\.block.runs)), text: text)
  }

  /// A line without members: the rows behind it have no members in common.
  static let noCommon = Array(#"{"$common":{}}"#.utf8)[...]

  /// The last line of common information between a row and the one before.
  private static func commonLine(_ metas: MetaBlock, before row: Int) -> ArraySlice<UInt8>? {
    let start = row == 0 ? 0 : metas.rows[row - 1].line.upperBound + 1
    let end = row < metas.rows.count ? metas.rows[row].line.lowerBound - 1 : metas.text.count
    guard start < end else { return nil }
    let lines = metas.text[start..<end]
    return lines.lastIndex(of: UInt8(ascii: "\n")).map { lines[($0 + 1)...] } ?? lines
  }

  /// The parts of a packet that was divided between blocks.
  private static func joined(_ runs: [ReportBlock.Run]) -> [ReportBlock.Run] {
    runs.reduce(into: []) { joined, run in
      var next = run
      if let last = joined.last, last.packet == run.packet, last.stream == run.stream,
        last.ids.upperBound + 1 == run.first
      {
        (next.first, next.count) = (last.first, last.count + run.count)
        next.payloadBytes = last.payloadBytes + run.payloadBytes
        joined.removeLast()
      }
      joined.append(next)
    }
  }
}

extension BlockReader {
  /// The next blocks that become one.
  /// - Parameters:
  ///   - id: blocks up to it were merged.
  ///   - end: blocks from this id on may still get others in front of them.
  ///   - day: of a block: blocks of two days are not merged.
  func merge(
    after id: Int64, before end: Int64, day: (BlockHead) -> Int64, of tables: StoreTables
  ) throws -> BlockMerge.Result {
    var (merge, isFull) = (BlockMerge(), false)
    guard end > id + 1 else { return .wait }
    for head in try tables.heads(id + 1...end - 1, isNewestFirst: false, limit: BlockMerge.blocksMax)
    where !isFull && head.last < end {
      let isOfNextDay = merge.heads.first.map { day($0) != day(head) } ?? false
      isFull = isOfNextDay || !merge.add(head)
    }
    isFull = isFull || merge.heads.count == BlockMerge.blocksMax
    guard isFull, let last = merge.heads.last else { return .wait }
    guard merge.heads.count > 1 else { return .stays(upTo: last.last) }
    return try merged(merge.heads, of: tables) ?? .stays(upTo: merge.heads[0].last)
  }

  /// - Returns: nil: one of them is damaged, or can't be packed.
  private func merged(
    _ heads: [BlockHead], of tables: StoreTables
  ) throws -> BlockMerge.Result? {
    var blocks: [OpenedBlock] = []
    for head in heads {
      guard let opened = try open(head, of: tables) else { return nil }
      blocks.append(opened)
    }
    return packed(heads, blocks)
  }

  private func packed(_ heads: [BlockHead], _ blocks: [OpenedBlock]) -> BlockMerge.Result? {
    do {
      let (head, body) = try BlockMerge.block(of: blocks).row()
      return .merged(former: heads, head: head, body: body)
    } catch { return nil }  // without memory they stay as they are
  }
}
