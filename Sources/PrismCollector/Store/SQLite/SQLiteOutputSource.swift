import PrismOutputs
import PrismSQL

/// Reads for one output from the store on SQLite. One process feeds all outputs; ids rise in the order of commits.
struct SQLiteOutputSource: LetterSource {
  let store: SQLitePacketStore
  let name: String

  func lead() async throws(StoreFailure) -> Bool { true }
  func close() async {}

  func cursor() async throws(StoreFailure) -> Int64 { try await asking { try $0.fact("output_\(name)") ?? 0 } }

  func next(after id: Int64, limit: Int) async throws(StoreFailure) -> [StoredReport] {
    try await store.readers.outputs.page(.forOutput(after: id, limit))
  }

  func note(cursor id: Int64, refused: [RefusedReport]) async throws(StoreFailure) {
    let now = await store.unixMilliseconds
    try await asking { statements in
      try DeadLetters(statements: statements, output: name).add(refused, time: now)
      try statements.set("output_\(name)", max(id, try statements.fact("output_\(name)") ?? 0))
    }
  }

  func asking<Result: Sendable>(
    _ body: @Sendable (SQLStatements) throws -> Result
  ) async throws(StoreFailure) -> Result {
    try await store.changing("the state of an output is not kept", "the state of an output is kept again") {
      try body($0.statements)
    }
  }
}
