import PrismPacket

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
}

/// Makes a block of reports of others, in the order of their ids. Common information that goes on is written once.
struct BlockBuilder {
  /// A line without members: the rows behind it have no members in common.
  private static let noCommon = Array(#"{"$common":{}}"#.utf8)[...]

  private var runs: [ReportBlock.Run] = []
  private var (text, common): ([UInt8], ArraySlice<UInt8>) = ([], [])

  /// nil: it has no report.
  var block: ReportBlock? { runs.isEmpty ? nil : ReportBlock(runs: runs, text: text) }

  /// Adds the reports of a block. - Parameter gone: ids of those that are left out. A packet may get gaps.
  mutating func add(_ opened: OpenedBlock, without gone: Set<Int64> = []) {
    let metas = opened.metas
    var row = -1
    for run in opened.block.runs {
      for (place, id) in run.ids.enumerated() {
        row += 1
        guard !gone.contains(id) else { continue }
        add(run, place)
        let shared = metas.rows[row].common.map { metas.text[$0] } ?? []
        if shared != common { add(line: shared.isEmpty ? Self.noCommon : shared) }
        common = shared
        add(line: metas.text[metas.rows[row].line])
      }
    }
  }

  /// Adds one report of a run. The parts of a packet that was divided between blocks are one again.
  private mutating func add(_ run: ReportBlock.Run, _ place: Int) {
    let (id, bytes) = (run.first + Int64(place), run.payloadBytes.isEmpty ? [] : [run.payloadBytes[place]])
    if let last = runs.last, last.packet == run.packet, last.stream == run.stream, last.ids.upperBound + 1 == id {
      runs[runs.count - 1].count += 1
      runs[runs.count - 1].payloadBytes += bytes
    } else {
      var part = run
      (part.first, part.count, part.payloadBytes) = (id, 1, bytes)
      runs.append(part)
    }
  }

  private mutating func add(line: ArraySlice<UInt8>) {
    if !text.isEmpty { text.append(UInt8(ascii: "\n")) }
    text += line
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
  private func merged(_ heads: [BlockHead], of tables: StoreTables) throws -> BlockMerge.Result? {
    var builder = BlockBuilder()
    for head in heads {
      guard let opened = try open(head, of: tables) else { return nil }
      builder.add(opened)
    }
    // Without memory they stay as they are.
    guard let (head, body) = try? builder.block?.row() else { return nil }
    return .merged(former: heads, head: head, body: body)
  }
}
