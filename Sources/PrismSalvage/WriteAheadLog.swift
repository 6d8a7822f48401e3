import Glibc

/// A write-ahead log, read without SQLite: SQLite silently stops at the first frame that isn't whole, and would lose what
/// was committed behind it.
///
/// Format: https://www.sqlite.org/fileformat.html#the_write_ahead_log
public struct WriteAheadLog {
  private static let headerBytes = 32
  private static let frameHeaderBytes = 24
  private static let frameBytes = frameHeaderBytes + DatabasePages.pageBytes

  /// By page number: the offset of the content of its newest whole frame of a committed transaction.
  private(set) var pages: [Int: Int] = [:]
  /// The same for frames whose checksum fails, where they are newer: nearly all of their rows may be whole.
  private(set) var damagedPages: [Int: Int] = [:]
  /// Whole commits behind something damaged.
  public private(set) var commitsBehindDamage = 0
  /// A frame of this log's that fails its checksum, or that ends with the file.
  public private(set) var hasDamagedFrame = false

  /// The offset at which SQLite stops to read: behind the last commit before anything damaged. nil: it reads nothing.
  public private(set) var soundEnd: Int?
  public private(set) var fileBytes = 0

  /// A frame before the last commit is so damaged that its page is not known.
  private(set) var hasUnknownFrame = false

  private var uncommitted: [(page: Int, offset: Int, isWhole: Bool)] = []
  private var isBehindDamage = false
  private var isBehindUnknownFrame = false

  /// Reads the whole log. nil if there is no log, or no frame in it.
  public init?(path: String) {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    guard let header = Self.read(descriptor, at: 0, Self.headerBytes),
      let first = Self.read(descriptor, at: Self.headerBytes, Self.frameBytes)
    else { return nil }
    let isWhole = Self.isWhole(header)
    // Frames of an earlier round through the file have other salts.
    let salts = isWhole ? Array(header[16..<24]) : Array(first[8..<16])
    var seed = Checksum(header, at: 24)
    let isBigEndian = isWhole && header[3] & 1 == 1
    isBehindDamage = !isWhole
    if isWhole { soundEnd = Self.headerBytes }
    var offset = Self.headerBytes
    while let frame = Self.read(descriptor, at: offset, Self.frameBytes) {
      take(frame, at: offset, hasSalts: Array(frame[8..<16]) == salts, seed: seed, isBigEndian)
      seed = Checksum(frame, at: 16)
      offset += Self.frameBytes
    }
    var facts = stat()
    if fstat(descriptor, &facts) == 0 { fileBytes = Int(facts.st_size) }
    if fileBytes > offset { hasDamagedFrame = true }
  }

  private mutating func take(_ frame: [UInt8], at offset: Int, hasSalts: Bool, seed: Checksum, _ isBigEndian: Bool) {
    guard hasSalts else {
      (isBehindDamage, isBehindUnknownFrame) = (true, true)
      return
    }
    var sum = seed
    sum.add(frame[0..<8], isBigEndian)
    sum.add(frame[Self.frameHeaderBytes...], isBigEndian)
    let isWhole = sum == Checksum(frame, at: 16)
    if !isWhole { (isBehindDamage, hasDamagedFrame) = (true, true) }
    uncommitted.append((frame.bigEndian32(0), offset + Self.frameHeaderBytes, isWhole))
    guard isWhole, frame.bigEndian32(4) != 0 else { return }
    if isBehindDamage { commitsBehindDamage += 1 } else { soundEnd = offset + Self.frameBytes }
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

  private static func isWhole(_ header: [UInt8]) -> Bool {
    guard header.bigEndian32(0) & ~1 == 0x377F_0682, header.bigEndian32(8) == DatabasePages.pageBytes else {
      return false
    }
    var sum = Checksum()
    sum.add(header[0..<24], header[3] & 1 == 1)
    return sum == Checksum(header, at: 24)
  }

  private static func read(_ descriptor: Int32, at offset: Int, _ count: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    return pread(descriptor, &bytes, count, off_t(offset)) == count ? bytes : nil
  }

  /// SQLite's own checksum: of 32-bit words, in pairs.
  private struct Checksum: Equatable {
    private var first: UInt32 = 0
    private var second: UInt32 = 0

    init() {}
    init(_ bytes: [UInt8], at offset: Int) {
      (first, second) = (UInt32(bytes.bigEndian32(offset)), UInt32(bytes.bigEndian32(offset + 4)))
    }

    mutating func add(_ bytes: ArraySlice<UInt8>, _ isBigEndian: Bool) {
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
  }
}
