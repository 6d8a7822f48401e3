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
  /// Of a device's own: its share of the answers that are not read yet.
  var turn: ReadGate.Place?
}

enum RecordSnapshotFault: Error {
  /// Packed it has more bytes than this.
  case tooLarge(bytes: Int)
}

/// Writes a snapshot. Its file has no name, so it is gone with its last reader, after a kill, too.
final class RecordSnapshotWriter {
  private static let pieceBytes = 256 * 1024

  private let packer: DownPacker
  private let file: UnnamedFile
  private let bytesMax: Int
  private var piece: [UInt8] = []
  private var (sequence, mark): (Int64, StoreMark?) = (0, nil)

  init(folder: String, encoding: PacketEncoding, bytesMax: Int) throws {
    packer = try DownPacker(encoding: encoding)
    file = try UnnamedFile(in: folder, name: "records")
    self.bytesMax = bytesMax
  }

  func add(_ line: DownLine) throws {
    if case .head(let head) = line { (sequence, mark) = (head.sequence, head.store) }
    piece += try packer.add(line.bytes)
    if piece.count >= Self.pieceBytes { try flush() }
  }

  func finish() throws -> RecordSnapshot {
    piece += try packer.finish()
    try flush()
    return RecordSnapshot(file: try file.finish(), lineCount: packer.lineCount, sequence: sequence, mark: mark)
  }

  private func flush() throws {
    guard file.byteCount + piece.count <= bytesMax else { throw RecordSnapshotFault.tooLarge(bytes: bytesMax) }
    try file.append(piece)
    piece.removeAll(keepingCapacity: true)
  }
}
