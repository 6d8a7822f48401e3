import PrismSQLite

/// Reads for one output from the store on SQLite. One process feeds all outputs; ids rise in the order of commits.
struct SQLiteOutputSource: LetterSource {
  let store: SQLitePacketStore
  let name: String

  func lead() async throws(StoreFailure) -> Bool { true }
  func close() async {}

  func cursor() async throws(StoreFailure) -> Int64 {
    try await store.askForOutput { database throws(SQLiteError) in try database.fact("output_\(name)") ?? 0 }
  }

  func next(after id: Int64, limit: Int) async throws(StoreFailure) -> [StoredReport] {
    var filter = ReportFilter(scope: .everything)
    (filter.after, filter.limit, filter.hasPayloads) = (id, limit, true)
    return try await store.readers.outputs.page(filter)
  }

  func note(cursor id: Int64, refused: [RefusedReport]) async throws(StoreFailure) {
    let now = await store.unixMilliseconds
    try await store.askForOutput { database throws(SQLiteError) in
      try SQLiteError.only { try letters(database).add(refused, time: now) }
      try database.set("output_\(name)", max(id, try database.fact("output_\(name)") ?? 0))
    }
  }

  func letters<Result: Sendable>(
    _ body: @Sendable (DeadLetters) throws -> Result
  ) async throws(StoreFailure) -> Result {
    try await store.askForOutput { database throws(SQLiteError) in try SQLiteError.only { try body(letters(database)) }
    }
  }

  private func letters(_ database: PacketDatabase) -> DeadLetters {
    DeadLetters(statements: database.tables.statements, output: name)
  }
}
