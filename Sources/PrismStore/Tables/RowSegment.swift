/// A part of a queue's rows, in a table of its own.
struct RowSegment: Sendable {
  /// Of its `RowTable`.
  let number: Int
  /// The lowest sequence that its rows may have. The oldest segment may hold lower ones, of rows that wait again.
  let first: Int64
  /// Sum of `size` of the rows that were inserted since its table was empty.
  var bytes = 0
  /// Ids of delivered rows that are still in the table. A run may cover ids that no row has.
  var spent = IDRuns()
  /// The exact number of these rows.
  var spentRows = 0
  /// About the sum of their sizes.
  var spentBytes = 0
  /// When the first of them was delivered, as far as this process knows; nil: not known, or no such row is there.
  var spentSince: Duration?

  /// Its rows are of the ring; nil: they leave by themselves.
  var kept: Kept?

  /// The rows of a segment of the ring that are not to leave.
  struct Kept: Sendable, Equatable {
    var rows = 0
    var bytes = 0
    /// A client gave the id of one.
    var hasClientIDs = false
  }

  init(number: Int, first: Int64, isRing: Bool = false) {
    (self.number, self.first, kept) = (number, first, isRing ? Kept() : nil)
  }

  var isRing: Bool { kept != nil }

  /// Its table is empty.
  mutating func empty() { self = RowSegment(number: number, first: first, isRing: isRing) }
}

extension IDRuns {
  /// The ids between the runs, without their bounds.
  var gaps: [(after: Int64, end: Int64)] {
    var (ranges, after): ([(after: Int64, end: Int64)], Int64) = ([], .min)
    for run in runs {
      ranges.append((after, run.first))
      after = run.last
    }
    return ranges + [(after, .max)]
  }
}
