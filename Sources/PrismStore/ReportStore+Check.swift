import Dispatch
import PrismBase

// Whether the database is sound, for `prismctl doctor`.
extension ReportStore {
  private static let checking = DispatchQueue(label: "prism.store.check", qos: .utility)

  /// Reads the whole file over a connection and on a queue of its own: reports are taken and sent meanwhile.
  /// - Returns: what is wrong with it, at most 5 things; empty: it is sound.
  /// - Throws: `unavailable` where it can't be read.
  public func check() async throws(StoreError) -> [String] {
    let path = options.databasePath
    let result: Result<[String], StoreError> = await withCheckedContinuation { continuation in
      Self.checking.async {
        continuation.resume(returning: Result { () throws(StoreError) in try Self.check(path) })
      }
    }
    return try result.get()
  }

  private static func check(_ path: String) throws(StoreError) -> [String] {
    do throws(SQLiteError) {
      let connection = try SQLiteConnection(.init(path: path, isReadOnly: true))
      var faults: [String] = []
      try connection.prepare("PRAGMA quick_check(5)").forEachRow { faults.append($0.text(0)) }
      return faults == ["ok"] ? [] : faults
    } catch {
      if error.isCorruption { return [error.description] }
      throw .unavailable(error.description)
    }
  }
}
