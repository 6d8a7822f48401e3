import PrismPacket
import PrismProtocol

/// A block from which reports are erased, and the block that takes its place.
struct BlockErasure: Sendable {
  let former: BlockHead
  /// nil: no report of it stays.
  let kept: (head: BlockHead, body: [UInt8])?
  /// Ascending.
  let erased: [Int64]

  /// Ids that follow each other.
  fileprivate var ranges: [ClosedRange<Int64>] {
    erased.reduce(into: []) { ranges, id in
      if let last = ranges.last, last.upperBound + 1 == id {
        ranges[ranges.count - 1] = last.lowerBound...id
      } else {
        ranges.append(id...id)
      }
    }
  }
}

extension BlockReader {
  /// The next block behind an id that has reports of a filter, without them; nil: there is no such block.
  func erasure(_ filter: ReportFilter, after id: Int64, of tables: StoreTables) throws -> BlockErasure? {
    var (wanted, found): (ReportFilter, BlockErasure?) = (filter, nil)
    wanted.after = id
    try forEachHead(wanted, of: tables) { head in
      guard try !matching([head], filter, of: tables).isEmpty, let block = try open(head, of: tables) else {
        return true
      }
      var erased: [Int64] = []
      _ = block.forEach(filter, filter.metas.map { FieldQuestion($0) }) { report in
        erased.append(report.id)
        return true
      }
      guard !erased.isEmpty else { return true }
      found = BlockErasure(former: head, kept: try block.without(Set(erased))?.row(), erased: erased.sorted())
      return false
    }
    return found
  }
}

extension OpenedBlock {
  /// - Returns: the reports without those of these ids, as a block; nil: no report stays. A packet may get gaps.
  func without(_ gone: Set<Int64>) -> ReportBlock? {
    var (runs, text, common, row): ([ReportBlock.Run], [UInt8], ArraySlice<UInt8>, Int) = ([], [], [], -1)
    func add(line: ArraySlice<UInt8>) {
      if !text.isEmpty { text.append(UInt8(ascii: "\n")) }
      text += line
    }
    for run in block.runs {
      for (place, id) in run.ids.enumerated() {
        row += 1
        guard !gone.contains(id) else { continue }
        let bytes = run.payloadBytes.isEmpty ? [] : [run.payloadBytes[place]]
        if let last = runs.last, last.packet == run.packet, last.stream == run.stream, last.ids.upperBound + 1 == id {
          runs[runs.count - 1].count += 1
          runs[runs.count - 1].payloadBytes += bytes
        } else {
          var part = run
          (part.first, part.count, part.payloadBytes) = (id, 1, bytes)
          runs.append(part)
        }
        let shared = metas.rows[row].common.map { metas.text[$0] } ?? []
        if shared != common { add(line: shared.isEmpty ? BlockMerge.noCommon : shared) }
        common = shared
        add(line: metas.text[metas.rows[row].line])
      }
    }
    return runs.isEmpty ? nil : ReportBlock(runs: runs, text: text)
  }
}

extension StoreTables {
  /// Puts what stays in the place of a block, and deletes the payloads and dead letters of what is erased.
  /// - Returns: false: the block is no longer as it was read, and nothing is changed.
  func erase(_ erasure: BlockErasure) throws -> Bool {
    let former = erasure.former
    guard try heads(former.ids, isNewestFirst: false, limit: 2) == [former] else { return false }
    try statements.run("DELETE FROM blocks WHERE id = $1", [former.id])
    if let kept = erasure.kept { try insert(kept.head, kept.body) }
    for ids in erasure.ranges {
      for table in ["payloads", "output_dead"] {
        try statements.run("DELETE FROM \(table) WHERE report BETWEEN $1 AND $2", [ids.lowerBound, ids.upperBound])
      }
    }
    // No report gets the id of an erased one.
    try statements.run(
      """
      INSERT INTO facts VALUES ('newest_report', $1)
      ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE facts.value < excluded.value
      """, [former.last])
    return true
  }

  /// Deletes the records of a device, and its streams with the ids of their packets. - Returns: how many records it had.
  func erase(device: String) throws -> Int {
    let records = try statements.integer("SELECT count(*) FROM records WHERE device = $1", [device]) ?? 0
    for table in ["record_answers", "packets"] {
      try statements.run("DELETE FROM \(table) WHERE stream IN (SELECT id FROM streams WHERE device = $1)", [device])
    }
    for table in ["records", "deleted_records", "record_tables", "streams"] {
      try statements.run("DELETE FROM \(table) WHERE device = $1", [device])
    }
    return Int(records)
  }
}
