import PrismProtocol
import PrismSQLite

/// The files and rows that are still to be brought over from databases that were set aside. The new database keeps it
/// in `facts` and changes it in the same transaction as the rows. So a kill at any point neither loses nor doubles a
/// row.
struct SalvageProgress: Equatable, Sendable {
  struct File: Equatable, Sendable {
    /// In the state folder.
    var name: String
    /// The first page that was not looked at.
    var nextPage: Int
  }

  /// The newest first: what it says of a row is what counts.
  var files: [File]
  /// By queue: rows that count as waiting and were not found yet.
  var missing: [QueueID: Int]
  /// Every file that rows came from since the last salvage ended.
  var sources: [String] = []
  /// Some of their reports can't be read.
  var isLossy = false

  static let sourcesKey = "salvage.sources"
  private static let lossyMark = "lossy"
  static let filesKey = "salvage"
  static let missingKey = "salvage.missing"

  /// As `write` writes it.
  init(files: String?, missing: String?, sources: String?) {
    self.files = (files ?? "").split(separator: "\n").compactMap { line in
      let words = line.split(separator: " ")
      guard words.count == 2, let page = Int(words[1]) else { return nil }
      return File(name: String(words[0]), nextPage: page)
    }
    self.missing = [:]
    if self.files.isEmpty { return }
    for line in (missing ?? "").split(separator: "\n") {
      let numbers = line.split(separator: " ").compactMap { Int($0) }
      guard numbers.count == 3 else { continue }
      if let queue = QueueID(Int64(numbers[0]), Int64(numbers[1])) { self.missing[queue] = numbers[2] }
    }
    let names = (sources ?? "").split(separator: "\n").map { String($0) }
    (self.sources, isLossy) = (names.filter { $0 != Self.lossyMark }, names.contains(Self.lossyMark))
  }

  init(_ connection: SQLiteConnection) throws(SQLiteError) {
    self.init(
      files: try connection.fact(Self.filesKey), missing: try connection.fact(Self.missingKey),
      sources: try connection.fact(Self.sourcesKey))
  }

  /// Whether rows of this queue may still come.
  func isAwaited(_ queue: QueueID) -> Bool { !files.isEmpty && (isLossy || missing[queue, default: 0] > 0) }

  /// The rows that may still come, by namespace and kind.
  func awaited(_ names: Names) -> [NamespaceName: [RowKind: Int]] {
    var awaited: [NamespaceName: [RowKind: Int]] = [:]
    for (number, namespace) in files.isEmpty ? [:] : names.namespaces {
      for queue in QueueID.all(of: number) where isAwaited(queue) {
        awaited[namespace, default: [:]][queue.kind] = missing[queue, default: 0]
      }
    }
    return awaited
  }

  func write(_ connection: SQLiteConnection) throws(SQLiteError) {
    let rows = missing.map { "\($0.key.namespace) \($0.key.kind.number) \($0.value)" }
    let texts = [
      Self.filesKey: files.map { "\($0.name) \($0.nextPage)" }, Self.missingKey: rows.sorted(),
      Self.sourcesKey: (isLossy ? [Self.lossyMark] : []) + sources,
    ]
    for (key, lines) in texts { try connection.setFact(key, files.isEmpty ? nil : lines.joined(separator: "\n")) }
  }
}
