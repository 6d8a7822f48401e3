import PrismOutputs
import PrismPacket
import PrismProtocol

/// The reports of a block, read one by one as they were when their packets came.
struct OpenedBlock {
  struct Report {
    let id: Int64
    let run: ReportBlock.Run
    /// Its place in the run.
    let place: Int
    let row: OpenedPacket.Row

    /// By which it is found and counted.
    func time(_ axis: ReportFilter.Axis) -> Int64 {
      axis == .created ? row.createdTime ?? run.received : run.received
    }
  }

  let block: ReportBlock
  let reports: ReportRows
  /// The rows and the common information in the lines.
  let metas: MetaBlock

  /// - Throws: `CollectorRefusal` or `PacketError`: it is not what was written.
  init(_ block: ReportBlock, _ cache: CommonCache) throws {
    let metas = try MetaBlock(parsing: block.text, rowsMax: ReportBlock.limits.rowsMax, cache: cache)
    guard metas.rows.count == block.runs.reduce(0, { $0 + $1.count }) else { throw PacketError.countMismatch }
    var (reader, row) = (RowReader(metas, cache), 0)
    let text = metas.text.span
    for run in block.runs {
      reader.begin(run.stream.namespace, clockCorrection: run.correction)
      for place in row..<row + run.count { try reader.read(metas.rows[place], of: text) }
      row += run.count
    }
    (self.block, self.metas, reports) = (block, metas, reader.finish())
  }

  /// Hands over the reports that a filter wants, in its order.
  /// - Parameters:
  ///   - metas: the filter's conditions.
  ///   - take: false ends it.
  /// - Returns: whether it came to its end.
  func forEach(_ filter: ReportFilter, _ metas: [FieldQuestion<Bool>], _ take: (Report) throws -> Bool) rethrows -> Bool
  {
    guard let ids = filter.ids else { return true }
    let type = filter.type.map { Array($0.utf8) }
    var end = reports.rows.count
    let starts = block.runs.reversed().map { run in
      end -= run.count
      return (run, end)
    }
    for meta in metas { meta.beginBlock() }
    for (run, start) in filter.isNewestFirst ? starts : starts.reversed() {
      guard run.ids.overlaps(ids),
        filter.wants(run.stream.device, run.stream.namespace.text, run.stream.kind.name)
      else { continue }
      let wanted = run.ids.clamped(to: ids)
      for step in 0..<Int64(wanted.count) {
        let id = filter.isNewestFirst ? wanted.upperBound - step : wanted.lowerBound + step
        let place = Int(id - run.first)
        let report = Report(id: id, run: run, place: place, row: reports.rows[start + place])
        guard type == nil || reports.bytes[report.row.type].elementsEqual(type ?? []) else { continue }
        guard filter.wants(report.time(filter.axis)) else { continue }
        guard metas.allSatisfy({ $0.of(report.row, reports) }) else { continue }
        guard try take(report) else { return false }
      }
    }
    return true
  }

  /// A report as readers get it, without its payload.
  func stored(_ report: Report) -> StoredReport {
    let (run, row) = (report.run, report.row)
    return StoredReport(
      id: report.id, device: run.stream.device, namespace: run.stream.namespace.text, kind: run.stream.kind.name,
      type: text(row.type), reportID: text(row.reportID), createdTime: row.createdTime, receivedTime: run.received,
      packetID: run.packet.description, place: row.reportID.isEmpty ? report.place : 0,
      chainIsBroken: run.chainIsBroken, meta: reports.meta(row),
      payloadBytes: run.payloadBytes.isEmpty ? nil : run.payloadBytes[report.place])
  }

  private func text(_ range: Range<Int>) -> String { String(decoding: reports.bytes[range], as: UTF8.self) }
}
