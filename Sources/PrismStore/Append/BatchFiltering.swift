import PrismProtocol

/// The work of filters on one batch (docs/filters.md).
struct BatchFiltering {
  /// Reports that became no row.
  var counts = FilterCounts()
  /// Rows that count more than before this batch.
  var counted: Set<RepeatedRows.Key> = []
  /// Rows from this number on are of this batch.
  let firstSequence: Int64
  private var nextMark = 0

  init(firstSequence: Int64) { self.firstSequence = firstSequence }

  /// The mark of a row. Call it for each row in their order.
  @inline(__always)
  mutating func mark(of row: Int, in batch: ReportBatch) -> ReportBatch.Mark? {
    guard nextMark < batch.marks.count, batch.marks[nextMark].row == row else { return nil }
    nextMark += 1
    return batch.marks[nextMark - 1].mark
  }
}
