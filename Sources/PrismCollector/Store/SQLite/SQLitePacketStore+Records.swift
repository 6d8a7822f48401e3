import PrismPacket
import PrismProtocol
import PrismSQLite

extension SQLitePacketStore: RecordStore {
  func change(
    _ changes: [RecordChange], of place: RecordPlace, if condition: ChangeCondition
  ) async throws(RecordFailure) -> [RecordChanged] {
    let result: Result<[RecordChanged], RecordFailure>
    do throws(StoreFailure) {
      let now = unixMilliseconds
      result = try perform("records can't be changed", "records are changed again") { database throws(SQLiteError) in
        try Self.change(changes, of: place, if: condition, in: database, now: now)
      }
    } catch { throw .store(error) }
    return try result.get()
  }

  private static func change(
    _ changes: [RecordChange], of place: RecordPlace, if condition: ChangeCondition, in database: PacketDatabase,
    now: Int64
  ) throws(SQLiteError) -> Result<[RecordChanged], RecordFailure> {
    let connection = database.connection
    try connection.execute("BEGIN IMMEDIATE")
    do throws(SQLiteError) {
      let result = try SQLiteError.only { try database.records.change(changes, of: place, if: condition, now: now) }
      if case .success = result { try connection.execute("COMMIT") } else { connection.rollBack() }
      return result
    } catch {
      connection.rollBack()
      throw error
    }
  }

  func record(_ id: RecordID, of place: RecordPlace) async throws(StoreFailure) -> CollectedRecord? {
    do throws(SQLiteError) { return try await readers.records.read { try RecordTables($0).find(id, in: place) } } catch
    {
      throw failed(reading: error)
    }
  }

  func commands(changedBefore time: Int64, limit: Int) async throws(StoreFailure) -> [CommandPlace] {
    do throws(SQLiteError) {
      return try await readers.records.read { try RecordTables($0).commands(changedBefore: time, limit: limit) }
    } catch { throw failed(reading: error) }
  }

  func reply(to question: DownQuestion) async throws(StoreFailure) -> RecordReply {
    do throws(SQLiteError) {
      return try await readers.records.reply(to: question)
    } catch { throw failed(reading: error) }
  }

  func readAll(of place: RecordPlace, _ take: @escaping @Sendable (DownLine) throws -> Void) async throws {
    let (path, vfs) = databasePlace
    do { try await SQLiteRecordReader.readAll(of: place, path: path, vfs: vfs, take) } catch {
      guard let error = error as? SQLiteError else { throw error }
      throw failed(reading: error)
    }
  }
}
