import PrismPacket

/// The columns of a block's row, which a store reads before it opens the block.
struct BlockHead: Sendable, Equatable {
  /// The ids of its first and its last report. Blocks never overlap, and ids only rise.
  var id: Int64, last: Int64
  var rows: Int
  /// Of the lines.
  var textBytes: Int
  /// Milliseconds since 1970, by the collector's clock.
  var received: ClosedRange<Int64>
  /// The same by the devices' clocks, corrected. A report without a created time counts with its received time.
  var created: ClosedRange<Int64>
  /// A JSON object: by namespace and kind the types, with their counts (`BlockCounts`); nil: they are many, or long.
  var types: String?
  /// `BlockDevices`; nil: they are too many.
  var devices: String?
  /// Of all columns and the body.
  var sum: Int64

  init(
    id: Int64, last: Int64, rows: Int, textBytes: Int, received: ClosedRange<Int64>, created: ClosedRange<Int64>,
    types: String?, devices: String?, sum: Int64
  ) {
    (self.id, self.last, self.rows, self.textBytes) = (id, last, rows, textBytes)
    (self.received, self.created, self.types, self.devices, self.sum) = (received, created, types, devices, sum)
  }

  /// Of a block with these reports. - Parameter body: as it is stored.
  init(_ runs: [ReportBlock.Run], _ reports: ReportRows, textBytes: Int, body: [UInt8]) {
    var (received, created) = (runs[0].received...runs[0].received, ClosedRange<Int64>?.none)
    var (counts, devices, row) = (BlockCounts(), Set<String>(), 0)
    for run in runs {
      received = min(received.lowerBound, run.received)...max(received.upperBound, run.received)
      devices.insert(run.stream.device)
      for fields in reports.rows[row..<row + run.count] {
        let time = fields.createdTime ?? run.received
        created = min(created?.lowerBound ?? time, time)...max(created?.upperBound ?? time, time)
        counts.add(reports.bytes[fields.type], run.stream, created: time, received: run.received)
      }
      row += run.count
    }
    self.init(
      id: runs[0].first, last: runs[runs.count - 1].ids.upperBound, rows: row, textBytes: textBytes, received: received,
      created: created ?? received,
      types: counts.text(createdFrom: (created ?? received).lowerBound, receivedFrom: received.lowerBound),
      devices: BlockDevices.text(of: devices), sum: 0)
    sum = checksum(body)
  }

  var ids: ClosedRange<Int64> { id...last }

  /// The checksum that belongs to these columns and this body.
  func checksum(_ body: [UInt8]) -> Int64 {
    var sum = Checksum.CRC32()
    let numbers: [Int64] = [
      id, last, Int64(rows), Int64(textBytes), received.lowerBound, received.upperBound, created.lowerBound,
      created.upperBound,
    ]
    numbers.withUnsafeBytes { sum.add($0) }
    Array("\(types ?? "-")\n\(devices ?? "-")\n".utf8).withUnsafeBytes { sum.add($0) }
    body.withUnsafeBytes { sum.add($0) }
    return Int64(sum.value)
  }

  /// Whether it may have a report that the filter wants, as far as SQL does not tell (`StoreTables.heads`). The block itself
  /// tells for certain.
  func mayHave(_ filter: ReportFilter) -> Bool {
    guard types.map(filter.scope.mayBe) ?? true else { return false }
    guard let device = filter.device, let devices else { return true }
    return BlockDevices.mayHave(device, devices)
  }
}
