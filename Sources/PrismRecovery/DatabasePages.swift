import Glibc

/// The pages of a database with pages of 4 KiB, its write-ahead log over them, read without SQLite: damage of one page
/// prevents no other from being read. Pages are numbered from 1.
final class DatabasePages {
  static let pageBytes = 4096

  private let file: RawFile
  private let logFile: RawFile?
  private let log: WriteAheadLog?
  /// Includes the pages that only the log has.
  let count: Int

  /// nil if the file can't be opened.
  init?(path: String) {
    guard let file = RawFile(path) else { return nil }
    (self.file, logFile, log) = (file, RawFile(path + "-wal"), WriteAheadLog(path: path + "-wal"))
    let (inFile, inLog) = (file.bytes / Self.pageBytes, log?.pages.keys.max() ?? 0)
    // A damaged page number is no reason to look at billions of pages.
    count = max(inFile, min(inLog, inFile + (log?.pages.count ?? 0) + 1024))
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
    let damaged = log?.damagedPages[number].flatMap { logFile?.read(at: $0, Self.pageBytes) }
    guard (1...max(1, count)).contains(number) else { return (nil, damaged != nil) }
    let whole =
      log?.pages[number].flatMap { logFile?.read(at: $0, Self.pageBytes) }
      ?? file.read(at: (number - 1) * Self.pageBytes, Self.pageBytes)
    guard let damaged else { return (whole, false) }
    // Its number may be what is damaged: it is taken for a later state of this page where it holds a row of it.
    guard let whole else { return (nil, true) }
    let before = Set(TableLeaf.cells(whole).map(\.id))
    let isLater = TableLeaf.cells(damaged).contains { before.contains($0.id) }
    return isLater ? (damaged, false) : (whole, true)
  }
}

/// A file that is read at any place, without SQLite.
final class RawFile {
  private let descriptor: Int32
  /// When it was opened.
  let bytes: Int

  /// nil if it can't be opened.
  init?(_ path: String) {
    descriptor = open(path, O_RDONLY | O_CLOEXEC)
    var facts = stat()
    bytes = fstat(descriptor, &facts) == 0 ? Int(facts.st_size) : 0
    if descriptor < 0 { return nil }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// nil if the file ends before.
  func read(at offset: Int, _ count: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    return pread(descriptor, &bytes, count, off_t(offset)) == count ? bytes : nil
  }
}
