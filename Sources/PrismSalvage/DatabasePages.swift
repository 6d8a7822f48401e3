import Glibc

/// The pages of a database with pages of 4 KiB, its write-ahead log over them, read without SQLite: damage of one page
/// prevents no other from being read. Pages are numbered from 1.
final class DatabasePages {
  static let pageBytes = 4096

  private let file: Int32
  private let logFile: Int32
  private let log: WriteAheadLog?
  /// Includes the pages that only the log has.
  let count: Int

  /// nil if the file can't be opened.
  init?(path: String) {
    file = open(path, O_RDONLY | O_CLOEXEC)
    logFile = open(path + "-wal", O_RDONLY | O_CLOEXEC)
    log = WriteAheadLog(path: path + "-wal")
    var facts = stat()
    let bytes = fstat(file, &facts) == 0 ? Int(facts.st_size) : 0
    let inLog = log?.pages.keys.max() ?? 0
    // A damaged page number is no reason to look at billions of pages.
    count = max(bytes / Self.pageBytes, min(inLog, bytes / Self.pageBytes + (log?.pages.count ?? 0) + 1024))
    if file < 0 { return nil }
  }

  deinit {
    if file >= 0 { close(file) }
    if logFile >= 0 { close(logFile) }
  }

  /// nil if there is no such page.
  func page(_ number: Int) -> [UInt8]? { newest(number).page }

  /// A page can only be read as an earlier commit left it, because its frame in the log is damaged. Counts may be too low, and
  /// numbers that were used look unused.
  var hasOutdatedPage: Bool {
    guard let log else { return false }
    return log.hasUnknownFrame || log.damagedPages.keys.contains { newest($0).isOutdated }
  }

  private func newest(_ number: Int) -> (page: [UInt8]?, isOutdated: Bool) {
    let damaged = log?.damagedPages[number].flatMap { read(logFile, at: $0) }
    guard (1...max(1, count)).contains(number) else { return (nil, damaged != nil) }
    let whole = log?.pages[number].flatMap { read(logFile, at: $0) } ?? read(file, at: (number - 1) * Self.pageBytes)
    guard let damaged else { return (whole, false) }
    // Its number may be what is damaged: it is taken for a later state of this page where it holds a row of it.
    guard let whole else { return (nil, true) }
    let before = Set(TableLeaf.cells(whole).map(\.id))
    let isLater = TableLeaf.cells(damaged).contains { before.contains($0.id) }
    return isLater ? (damaged, false) : (whole, true)
  }

  private func read(_ descriptor: Int32, at offset: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: Self.pageBytes)
    return pread(descriptor, &bytes, Self.pageBytes, off_t(offset)) == Self.pageBytes ? bytes : nil
  }
}
