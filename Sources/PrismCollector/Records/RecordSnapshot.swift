import Glibc
import PrismBase
import PrismPacket
import PrismProtocol

/// All records of a table in one file, packed: for any number of answers.
struct RecordSnapshot: Sendable {
  let file: PieceFile
  let lineCount: Int
  /// The number in its head.
  let sequence: Int64
  let mark: StoreMark?
}

/// Why there is no snapshot.
enum RecordSnapshotFault: Error {
  /// Too many are being made.
  case busy
  /// Packed it has more bytes than this.
  case tooLarge(bytes: Int)
  case file(String)
}

/// Writes a snapshot. Its file has no name, so it is gone with its last reader, after a kill, too.
final class RecordSnapshotWriter {
  private static let pieceBytes = 256 * 1024

  private let packer: DownPacker
  private let descriptor: Int32
  private let path: String
  private let bytesMax: Int
  private var piece: [UInt8] = []
  private var byteCount = 0
  private var (sequence, mark): (Int64, StoreMark?) = (0, nil)

  init(folder: String, encoding: PacketEncoding, bytesMax: Int) throws {
    packer = try DownPacker(encoding: encoding)
    var template = Array("\(folder)/records-XXXXXX".utf8CString)
    descriptor = mkstemp(&template)
    path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    self.bytesMax = bytesMax
    guard descriptor >= 0 else {
      throw RecordSnapshotFault.file("\(path) can't be made: \(String(cString: strerror(errno)))")
    }
    unlink(path)
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  func add(_ line: DownLine) throws {
    if case .head(let head) = line { (sequence, mark) = (head.sequence, head.store) }
    piece += try packer.add(line.bytes)
    if piece.count >= Self.pieceBytes { try flush() }
  }

  func finish() throws -> RecordSnapshot {
    piece += try packer.finish()
    try flush()
    let file = try PieceFile(taking: fcntl(descriptor, F_DUPFD_CLOEXEC, 0), of: path)
    return RecordSnapshot(file: file, lineCount: packer.lineCount, sequence: sequence, mark: mark)
  }

  private func flush() throws {
    byteCount += piece.count
    guard byteCount <= bytesMax else { throw RecordSnapshotFault.tooLarge(bytes: bytesMax) }
    var written = 0
    while written < piece.count {
      let count = piece.withUnsafeBytes { write(descriptor, $0.baseAddress! + written, $0.count - written) }
      guard count > 0 || errno == EINTR else {
        throw RecordSnapshotFault.file("\(path) can't be written: \(String(cString: strerror(errno)))")
      }
      written += max(0, count)
    }
    piece.removeAll(keepingCapacity: true)
  }
}
