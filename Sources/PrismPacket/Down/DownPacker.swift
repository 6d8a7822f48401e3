import PrismProtocol

/// Compresses the lines of an answer, one after the other; `DownBody` encrypts them, as often as they are asked for.
///
/// Holds one piece of them at a time; not for two threads at once.
public final class DownPacker {
  private static let pieceBytes = 64 * 1024

  private let packer: any PiecePacker
  private var piece: [UInt8] = []
  /// Lines so far.
  public private(set) var lineCount = 0
  /// Bytes before compression so far.
  public private(set) var rawBytes = 0

  /// - Parameter encoding: zstd only for a question that accepts it.
  public init(encoding: PacketEncoding) throws(PacketError) { packer = try encoding.piecePacker() }

  /// - Parameter line: without a line feed.
  /// - Returns: packed bytes that are ready, to be appended to those before; often there are no such bytes.
  /// - Throws: `tooLarge` for a line that no reader takes.
  public func add(_ line: [UInt8]) throws(PacketError) -> [UInt8] {
    guard line.count <= DownLine.bytesMax else { throw .tooLarge }
    if lineCount > 0 { piece.append(UInt8(ascii: "\n")) }
    piece += line
    lineCount += 1
    return piece.count < Self.pieceBytes ? [] : try pack(isLast: false)
  }

  /// - Returns: the last packed bytes. - Throws: `countMismatch` without a line.
  public func finish() throws(PacketError) -> [UInt8] {
    guard lineCount > 0 else { throw .countMismatch }
    return try pack(isLast: true)
  }

  private func pack(isLast: Bool) throws(PacketError) -> [UInt8] {
    rawBytes += piece.count
    defer { piece.removeAll(keepingCapacity: true) }
    return try packer.pack(piece, isLast: isLast)
  }
}
