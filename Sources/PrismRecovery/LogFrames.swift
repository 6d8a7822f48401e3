/// The frames of a write-ahead log, one after the other, without SQLite.
///
/// Format: https://www.sqlite.org/fileformat2.html#the_write_ahead_log
struct LogFrames {
  static let headerBytes = 32
  static let frameHeaderBytes = 24

  struct Frame {
    /// Header and page.
    var bytes: [UInt8]
    /// In the file.
    var offset: Int
    /// It belongs to this round through the file: frames of an earlier one have other salts.
    var hasSalts: Bool
    /// Its checksum, which goes on from the frame before it, fits. The salts are not part of it.
    var isSummed: Bool

    /// The checksum of all before it.
    fileprivate var seed: LogChecksum

    var isWhole: Bool { hasSalts && isSummed }
    var page: Int { bytes.bigEndian32(0) }
    /// It ends a transaction.
    var isCommit: Bool { bytes.bigEndian32(4) != 0 }
  }

  let isHeaderWhole: Bool
  let pageBytes: Int
  let salts: [UInt8]
  let file: RawFile
  private let isBigEndian: Bool
  private var seed: LogChecksum
  private(set) var offset = Self.headerBytes

  var frameBytes: Int { Self.frameHeaderBytes + pageBytes }

  /// nil: there is no frame in it.
  init?(_ path: String, pageBytes: Int) {
    guard let file = RawFile(path), let header = file.read(at: 0, Self.headerBytes),
      let first = file.read(at: Self.headerBytes, Self.frameHeaderBytes + pageBytes)
    else { return nil }
    (self.file, self.pageBytes) = (file, pageBytes)
    isHeaderWhole = Self.isWhole(header, pageBytes: pageBytes)
    salts = Array(isHeaderWhole ? header[16..<24] : first[8..<16])
    isBigEndian = isHeaderWhole && header[3] & 1 == 1
    seed = LogChecksum(header, at: 24)
  }

  /// nil: the file ends.
  mutating func next() -> Frame? {
    guard let bytes = file.read(at: offset, frameBytes) else { return nil }
    let before = seed
    defer { (seed, offset) = (LogChecksum(bytes, at: 16), offset + frameBytes) }
    return Frame(
      bytes: bytes, offset: offset, hasSalts: Array(bytes[8..<16]) == salts, isSummed: isSummed(bytes, before),
      seed: before)
  }

  private func isSummed(_ bytes: [UInt8], _ seed: LogChecksum) -> Bool {
    var sum = seed
    sum.add(bytes[0..<8], isBigEndian: isBigEndian)
    sum.add(bytes[Self.frameHeaderBytes...], isBigEndian: isBigEndian)
    return sum == LogChecksum(bytes, at: 16)
  }

  /// The frame with the one bit of its page number that makes the checksum fit; nil: the damage is elsewhere.
  ///
  /// The checksum is weak: of a flipped bit in the page, too, it may say that it is a bit of the number.
  func corrected(_ frame: Frame) -> Frame? {
    var bytes = frame.bytes
    for bit in 0..<32 {
      bytes[bit / 8] ^= 1 << UInt8(bit % 8)
      if isSummed(bytes, frame.seed) {
        return Frame(bytes: bytes, offset: frame.offset, hasSalts: true, isSummed: true, seed: frame.seed)
      }
      bytes[bit / 8] ^= 1 << UInt8(bit % 8)
    }
    return nil
  }

  func page(at offset: Int) -> [UInt8]? { file.read(at: offset + Self.frameHeaderBytes, pageBytes) }

  private static func isWhole(_ header: [UInt8], pageBytes: Int) -> Bool {
    guard header.bigEndian32(0) & ~1 == 0x377F_0682, header.bigEndian32(8) == pageBytes else { return false }
    var sum = LogChecksum()
    sum.add(header[0..<24], isBigEndian: header[3] & 1 == 1)
    return sum == LogChecksum(header, at: 24)
  }
}

/// SQLite's own checksum of a log: of 32-bit words, in pairs.
struct LogChecksum: Equatable {
  private var first: UInt32 = 0
  private var second: UInt32 = 0

  init() {}
  init(_ bytes: [UInt8], at offset: Int) {
    (first, second) = (UInt32(bytes.bigEndian32(offset)), UInt32(bytes.bigEndian32(offset + 4)))
  }

  mutating func add(_ bytes: ArraySlice<UInt8>, isBigEndian: Bool) {
    bytes.withUnsafeBytes { words in
      for offset in stride(from: 0, to: words.count, by: 8) {
        let (a, b) = (
          words.loadUnaligned(fromByteOffset: offset, as: UInt32.self),
          words.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self)
        )
        first = first &+ (isBigEndian ? UInt32(bigEndian: a) : UInt32(littleEndian: a)) &+ second
        second = second &+ (isBigEndian ? UInt32(bigEndian: b) : UInt32(littleEndian: b)) &+ first
      }
    }
  }

  func put(into bytes: inout [UInt8], at offset: Int) {
    bytes.putBigEndian32(first, at: offset)
    bytes.putBigEndian32(second, at: offset + 4)
  }
}

/// A write-ahead log, read without SQLite: SQLite silently stops at the first frame that isn't whole, and would lose what
/// was committed behind it.
public struct WriteAheadLog {
  /// For the log of a program whose database has such a log, and that leaves the commit out.
  public static let tornWarning =
    "the last commit in the log is not whole and is left out: it was being written when the last run ended, or, if it "
    + "had been answered, it was damaged since"

  /// By page number: the offset of the content of its newest whole frame of a committed transaction.
  private(set) var pages: [Int: Int] = [:]
  /// The same for frames whose checksum fails, where they are newer: nearly all of their rows may be whole.
  private(set) var damagedPages: [Int: Int] = [:]
  /// Whole commits behind something damaged.
  private(set) var commitsBehindDamage = 0
  /// A frame of this log's that fails its checksum, or that ends with the file.
  public private(set) var hasDamagedFrame = false

  /// The offset at which SQLite stops to read: behind the last commit before anything damaged. nil: it reads nothing.
  private(set) var soundEnd: Int?
  /// Behind its last whole commit.
  private(set) var end = 0

  /// A frame before the last commit is so damaged that its page is not known.
  private(set) var hasUnknownFrame = false

  private var uncommitted: [(page: Int, offset: Int, isWhole: Bool)] = []
  private var isBehindDamage = false
  private var isBehindUnknownFrame = false

  /// Reads the whole log. nil if there is no log, or no frame in it.
  /// - Parameter pageBytes: of the database.
  init?(path: String, pageBytes: Int = DatabasePages.pageBytes) {
    guard var frames = LogFrames(path, pageBytes: pageBytes) else { return nil }
    isBehindDamage = !frames.isHeaderWhole
    if frames.isHeaderWhole { soundEnd = LogFrames.headerBytes }
    while let frame = frames.next() { take(frame) }
    if frames.file.bytes > frames.offset { hasDamagedFrame = true }
  }

  private mutating func take(_ frame: LogFrames.Frame) {
    guard frame.hasSalts else {
      (isBehindDamage, isBehindUnknownFrame) = (true, true)
      return
    }
    if !frame.isWhole { (isBehindDamage, hasDamagedFrame) = (true, true) }
    uncommitted.append((frame.page, frame.offset + LogFrames.frameHeaderBytes, frame.isWhole))
    guard frame.isWhole, frame.isCommit else { return }
    end = frame.offset + frame.bytes.count
    if isBehindDamage { commitsBehindDamage += 1 } else { soundEnd = end }
    if isBehindUnknownFrame { hasUnknownFrame = true }
    for entry in uncommitted {
      if entry.isWhole {
        pages[entry.page] = entry.offset
        damagedPages[entry.page] = nil
      } else {
        damagedPages[entry.page] = entry.offset
      }
    }
    uncommitted.removeAll()
  }
}
