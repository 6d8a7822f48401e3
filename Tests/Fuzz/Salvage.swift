import Glibc
import PrismSQLite

@testable import PrismRecovery
@testable import PrismStore

#if FUZZ
  import FuzzSupport
#endif

/// Database files that the salvage reader takes apart, with a write-ahead log beside them.
///
/// A database is mostly zeros, so the input has only its other bytes. It has the number of pages and of chunks, the
/// chunks (page, offset, length, bytes), then the log as it is. `Tests/Fuzz/seed-salvage` makes such an input of a real file.
#if FUZZ
  @main
#endif
enum SalvageHarness: FuzzHarness {
  static let repeatsInput = false
  static let bytesMin = pagesMax * pageBytes / 8

  private static let path = "/dev/shm/prism-fuzz-salvage-\(getpid()).db"
  private static let pageBytes = DatabasePages.pageBytes
  private static let pagesMax = 256

  static func run(_ input: ArraySlice<UInt8>) {
    var rest = input
    write(database(&rest), to: path)
    write(Array(rest), to: path + "-wal")
    guard let source = SalvageSource(path: path) else { return }
    let database = source.database
    _ = (database.isOfThisKind, source.namespaceEnd, database.hasOutdatedPage)
    let names = Set((0...database.pageCount).compactMap { database.table(of: $0) })
    for name in names { try? database.forEachRecord(of: name, read) }
    for name in names.sorted().prefix(4) { try? database.forEachRow(of: name, [1, 2, 300], read) }
    _ = source.claimed
  }

  private static func database(_ rest: inout ArraySlice<UInt8>) -> [UInt8] {
    let (pages, chunks) = (rest.takeNumber() % (pagesMax + 1), rest.takeNumber())
    var bytes = [UInt8](repeating: 0, count: pages * pageBytes)
    for _ in 0..<chunks where !rest.isEmpty {
      let (page, offset, length) = (rest.takeNumber(), rest.takeNumber(), rest.takeNumber())
      let start = page * pageBytes + offset % pageBytes
      let chunk = rest.prefix(length % (pageBytes + 1))
      rest = rest.dropFirst(chunk.count)
      guard start < bytes.count else { continue }
      let count = min(chunk.count, bytes.count - start)
      bytes.replaceSubrange(start..<start + count, with: chunk.prefix(count))
    }
    return bytes
  }

  private static func read(_ record: SalvagedRecord) throws(SQLiteError) {
    _ = LedgerRecord(record.row(of: LedgerRecord.Column.self))
    _ = PacketRecord(record.row(of: PacketRecord.Column.self))
    _ = DeadLetterRecord(record.row(of: DeadLetterRecord.Column.self))
    _ = DeliveryRecord(record.row(of: DeliveryRecord.Column.self))
    _ = ContextRecord(record.row(of: ContextRecord.Column.self))
    _ = NameRecord(record.row(of: NameRecord.Column.self), in: .types)
    for hasPayload in [false, true] { _ = try record.withWholeRow(hasPayload: hasPayload) { $0.size } }
  }

  private static func write(_ bytes: [UInt8], to path: String) {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    precondition(file >= 0)
    bytes.withUnsafeBytes { _ = Glibc.write(file, $0.baseAddress, $0.count) }
    close(file)
  }
}
