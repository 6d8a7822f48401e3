/// Reads for one output from the store on SQLite. One process feeds all outputs; ids rise in the order of commits.
struct SQLiteOutputSource: OutputSource {
  let store: SQLitePacketStore
  let name: String

  func lead() async throws(StoreFailure) -> Bool { true }
  func cursor() async throws(StoreFailure) -> Int64 { try await store.cursor(of: name) }
  func note(cursor id: Int64) async throws(StoreFailure) { try await store.note(cursor: id, of: name) }
  func close() async {}

  func next(after id: Int64, limit: Int) async throws(StoreFailure) -> [StoredReport] {
    var filter = ReportFilter()
    (filter.after, filter.limit, filter.hasPayloads) = (id, limit, true)
    return try await store.page(filter)
  }
}
