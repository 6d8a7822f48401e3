import PrismProtocol
import PrismSQLite

/// The part of the store's memory about tables that come down. It equals the database after every commit.
struct DownState {
  /// A whole table on its way in, beside the one that programs read. A restart forgets it.
  struct Stage {
    let table: Int
    /// As it was declared when it began.
    let declared: RecordTable
    var rows = 0
    /// An id came twice, or fields can't be merged.
    var isBroken = false
  }

  /// By their numbers in `record_tables`.
  private(set) var tables: [Int: DownTableRow] = [:]
  /// By their contents' numbers.
  var stages: [Int64: Stage] = [:]
  /// Contents that are not read any more, and are deleted slice by slice.
  var garbage: [Int64] = []
  /// Tables that the open transaction changed or removed.
  var touched: Set<Int> = []
  private var lastContent: Int64 = 0

  init() {}

  /// - Throws: `isCorruption` if a row is not what was written.
  init(_ connection: SQLiteConnection) throws(SQLiteError) {
    for table in try connection.records(of: DownTableRow.self, from: "down_tables") { tables[table.table] = table }
    let read = Set(tables.values.map(\.content))
    lastContent = read.max() ?? 0
    for name in ["down_records", "down_links"] {
      // Only the first row of each content is looked at.
      let next = try connection.prepare("SELECT min(content) FROM \(name) WHERE content > :content")
      var content: Int64 = 0
      next.bind(":content", content)
      while let found = try next.firstInt() {
        content = found
        if !read.contains(content), !garbage.contains(content) { garbage.append(content) }
        next.bind(":content", content)
      }
      lastContent = max(lastContent, content)
    }
  }

  /// The table is written with the commit; nil removes it.
  subscript(table: Int) -> DownTableRow? {
    get { tables[table] }
    set {
      tables[table] = newValue
      touched.insert(table)
    }
  }

  /// Notes the time without a write; the next one has it.
  mutating func hold(_ table: Int, at unixMilliseconds: Int64) { tables[table]?.hold(at: unixMilliseconds) }

  mutating func nextContent() -> Int64 {
    lastContent += 1
    return lastContent
  }
}
