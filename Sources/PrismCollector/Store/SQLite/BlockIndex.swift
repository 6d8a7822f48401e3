import PrismSQLite

/// The tables `type_blocks` and `stream_blocks` of `collector.db`, which say what each block of reports has.
struct BlockIndex {
  private let noteType: SQLiteStatement, noteStream: SQLiteStatement
  /// The noted facts of the block that reports are written to.
  private var block: (number: Int64, types: Set<Int64>, streams: Set<Int64>) = (-1, [], [])
  /// Of the report before: reports of a packet mostly are alike.
  private var last: (number: Int64, type: Int64, stream: Int64) = (-1, -1, -1)

  init(_ connection: SQLiteConnection) throws(SQLiteError) {
    noteType = try connection.prepare("INSERT OR IGNORE INTO type_blocks VALUES (:key, :block)")
    noteStream = try connection.prepare("INSERT OR IGNORE INTO stream_blocks VALUES (:key, :block)")
  }

  /// Notes a report at the end of the table.
  mutating func note(type: Int64, stream: Int64, ofNewest report: Int64) throws(SQLiteError) {
    let number = report >> PacketSchema.blockBits
    if last == (number, type, stream) { return }
    last = (number, type, stream)
    if number != block.number { block = (number, [], []) }
    if block.types.insert(type).inserted { try note(noteType, type, number) }
    if block.streams.insert(stream).inserted { try note(noteStream, stream, number) }
  }

  /// Notes a report at any place of the table.
  func note(type: Int64, stream: Int64, of report: Int64) throws(SQLiteError) {
    let number = report >> PacketSchema.blockBits
    try note(noteType, type, number)
    try note(noteStream, stream, number)
  }

  private func note(_ statement: SQLiteStatement, _ key: Int64, _ block: Int64) throws(SQLiteError) {
    statement.bind(":key", key)
    statement.bind(":block", block)
    try statement.run()
  }
}
