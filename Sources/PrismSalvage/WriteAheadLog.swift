import Glibc

/// A write-ahead log, read without SQLite: SQLite silently stops at the first frame that isn't whole, and would lose what
/// was committed behind it.
public struct WriteAheadLog {
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
  /// - Parameter pageBytes: of the database; default 4096.
  public init?(path: String, pageBytes: Int = 4096) {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    guard var frames = LogFrames(descriptor, pageBytes: pageBytes) else { return nil }
    isBehindDamage = !frames.isHeaderWhole
    if frames.isHeaderWhole { soundEnd = LogFrames.headerBytes }
    while let frame = frames.next() { take(frame) }
    fileBytes = frames.fileBytes
    if fileBytes > frames.offset { hasDamagedFrame = true }
  }

  private mutating func take(_ frame: LogFrames.Frame) {
    guard frame.hasSalts else {
      (isBehindDamage, isBehindUnknownFrame) = (true, true)
      return
    }
    if !frame.isWhole { (isBehindDamage, hasDamagedFrame) = (true, true) }
    uncommitted.append((frame.page, frame.offset + LogFrames.frameHeaderBytes, frame.isWhole))
    guard frame.isWhole, frame.isCommit else { return }
    if isBehindDamage { commitsBehindDamage += 1 } else { soundEnd = frame.offset + frame.bytes.count }
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
