import Glibc

/// Copies a damaged write-ahead log so that SQLite reads it up to its last whole commit, over the damaged frames.
///
/// Each frame of the copy has a checksum that fits. A frame whose own checksum fails is copied if its content may be a
/// page: nearly all of it may be as it was. Any other is left out, and its page is as the commit before left it.
public struct LogRepair {
  /// The end of the copy's name, behind the log's, while it is written.
  public static let copySuffix = "-wal.repaired"

  /// Frames of the copy.
  public private(set) var frames = 0
  /// Frames whose checksum fails, and that were copied.
  public private(set) var damagedFrames = 0
  /// Frames that were left out.
  public private(set) var missingFrames = 0

  private let pageBytes: Int
  private let pagesMax: Int
  private let target: Int32
  private let database: RawFile?
  /// By page: the offset of its newest frame so far.
  private var newest: [Int: Int] = [:]
  private let salts: [UInt8]
  private var sum = LogChecksum()

  /// Copies the log of `database` and puts the copy in its place, whole or not at all: a process that is killed meanwhile
  /// leaves the log as it was.
  /// - Parameter pageBytes: of the database.
  /// - Returns: nil if there is no commit behind a damaged frame, or if the copy can't be written.
  public static func run(database: String, pageBytes: Int) -> LogRepair? {
    let path = database + "-wal"
    guard let log = WriteAheadLog(path: path, pageBytes: pageBytes), log.commitsBehindDamage > 0,
      var frames = LogFrames(path, pageBytes: pageBytes)
    else { return nil }
    let copy = database + copySuffix
    let target = open(copy, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard target >= 0 else { return nil }
    defer { close(target) }
    var repair = LogRepair(frames, target, RawFile(database))
    guard repair.write(&frames, end: log.end), fsync(target) == 0, rename(copy, path) == 0 else {
      unlink(copy)
      return nil
    }
    return repair
  }

  private init(_ frames: LogFrames, _ target: Int32, _ database: RawFile?) {
    (pageBytes, salts, self.target, self.database) = (frames.pageBytes, frames.salts, target, database)
    pagesMax = (database?.bytes ?? 0) / pageBytes + frames.file.bytes / pageBytes + 1
  }

  private mutating func write(_ frames: inout LogFrames, end: Int) -> Bool {
    guard writeHeader() else { return false }
    while frames.offset < end, let found = frames.next() {
      let frame = found.isSummed ? found : likeliest(found, in: frames)
      guard frame.isSummed || isLikely(frame) else {
        missingFrames += 1
        continue
      }
      newest[frame.page] = found.offset
      guard write(frame) else { return false }
    }
    return true
  }

  private mutating func writeHeader() -> Bool {
    var header = [UInt8](repeating: 0, count: LogFrames.headerBytes)
    header.putBigEndian32(0x377F_0682, at: 0)
    header.putBigEndian32(3_007_000, at: 4)
    header.putBigEndian32(UInt32(pageBytes), at: 8)
    header.replaceSubrange(16..<24, with: salts)
    sum.add(header[0..<24], isBigEndian: false)
    sum.put(into: &header, at: 24)
    return Glibc.write(target, header, header.count) == header.count
  }

  private mutating func write(_ frame: LogFrames.Frame) -> Bool {
    var bytes = frame.bytes
    if !frame.isSummed {
      // It may not have been the end of a transaction.
      bytes.putBigEndian32(0, at: 4)
      damagedFrames += 1
    }
    bytes.replaceSubrange(8..<16, with: salts)
    sum.add(bytes[0..<8], isBigEndian: false)
    sum.add(bytes[LogFrames.frameHeaderBytes...], isBigEndian: false)
    sum.put(into: &bytes, at: 16)
    frames += 1
    return Glibc.write(target, bytes, bytes.count) == bytes.count
  }

  /// The frame as it is, or with another page number: whichever page was more like this one before.
  private func likeliest(_ found: LogFrames.Frame, in frames: LogFrames) -> LogFrames.Frame {
    guard let other = frames.corrected(found), (1...pagesMax).contains(other.page) else { return found }
    guard (1...pagesMax).contains(found.page) else { return other }
    let page = found.bytes[LogFrames.frameHeaderBytes...]
    func equalBytes(_ number: Int) -> Int {
      zip(page, before(number, in: frames) ?? []).count { $0 == $1 }
    }
    return equalBytes(other.page) > equalBytes(found.page) ? other : found
  }

  /// The page as it was before this frame; nil: it is new.
  private func before(_ number: Int, in frames: LogFrames) -> [UInt8]? {
    if let offset = newest[number] { return frames.page(at: offset) }
    return database?.read(at: (number - 1) * pageBytes, pageBytes)
  }

  /// Whether a damaged frame may hold its page: of a tree whose pages exist, or one of a chain.
  private func isLikely(_ frame: LogFrames.Frame) -> Bool {
    guard (1...pagesMax).contains(frame.page) else { return false }
    let page = Array(frame.bytes[LogFrames.frameHeaderBytes...])
    guard (BTreePage.headerOffset(page) > 0) == (frame.page == 1) else { return false }
    switch BTreePage.kind(page) {
    case BTreePage.leafTable, BTreePage.leafIndex: return true
    case BTreePage.interiorTable, BTreePage.interiorIndex:
      return BTreePage.children(page).allSatisfy { (1...pagesMax).contains($0) }
    default: return page.bigEndian32(0) <= pagesMax && page[0..<16].contains { $0 != 0 }
    }
  }
}
