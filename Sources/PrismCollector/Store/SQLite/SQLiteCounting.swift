import PrismSQLite

/// Counts the rows of a statement by time and word. SQLite would sort them first, which takes longer than reading them.
struct SQLiteCounting {
  private enum Column: String, SQLiteColumn { case time, word }
  private struct Cell: Hashable { let time: Int64, word: Int64 }

  private static let nearMax: Int64 = 1024

  private var counts: [Cell: Int] = [:]
  /// Of the bucket that was read last, by word: few words, so no look-up. Reports lie in the order of time.
  private var near = [Int](repeating: 0, count: Int(nearMax))
  private var time: Int64 = 0

  /// - Parameter statement: returns a bucket and a word of each report, as numbers.
  mutating func read(_ statement: SQLiteStatement) throws(SQLiteError) {
    defer { statement.reset() }
    while try statement.step() {
      let row = statement.row(of: Column.self)
      let (time, word) = (row.int64(.time), row.int64(.word))
      if time != self.time { flush(next: time) }
      if 0..<Self.nearMax ~= word {
        near[Int(word)] += 1
      } else {
        counts[Cell(time: time, word: word), default: 0] += 1
      }
    }
    flush(next: time)
  }

  private mutating func flush(next: Int64) {
    for (word, count) in near.enumerated() where count > 0 {
      counts[Cell(time: time, word: Int64(word)), default: 0] += count
      near[word] = 0
    }
    time = next
  }

  /// - Parameter name: of a word; words may share one.
  func named(bucket: Int64, _ name: (Int64) throws(SQLiteError) -> String) throws(SQLiteError) -> [ReportCount] {
    var names: [Int64: String] = [:]
    var found: [ReportCount] = []
    for (cell, count) in counts {
      let group = if let known = names[cell.word] { known } else { try name(cell.word) }
      names[cell.word] = group
      found.append(ReportCount(time: cell.time * bucket, group: group, count: count))
    }
    return found
  }
}
