import PrismProtocol

/// The lines of a verified answer, one after the other, in the memory of a few pieces. Not for two threads at once.
public final class DownLines {
  private var block: DownBlock
  private let unpacker: any PieceUnpacker
  private let lineCount: Int
  private let unpackedBytesMax: Int
  private var packed: [UInt8] = []
  private var packedOffset = 0
  private var plain: [UInt8] = []
  private var plainOffset = 0
  private var unpackedBytes = 0
  private var lines = 0

  init(_ block: DownBlock, unpacker: any PieceUnpacker, lineCount: Int, unpackedBytesMax: Int) {
    (self.block, self.unpacker) = (block, unpacker)
    (self.lineCount, self.unpackedBytesMax) = (lineCount, unpackedBytesMax)
  }

  /// The next line, without its line feed; nil behind the last one.
  /// - Throws: `countMismatch` for another number of lines than the headers say; `tooLarge` for a longer line than
  ///   `DownLine.bytesMax`, or more bytes than the limit; `unpackFailed`; `internal`.
  public func next() throws(PacketError) -> [UInt8]? {
    guard lines < lineCount else {
      guard try isAtEnd() else { throw .countMismatch }
      return nil
    }
    var line: [UInt8] = []
    while true {
      let rest = plain[plainOffset...]
      if let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
        line += rest[..<end]
        plainOffset = end + 1
        guard lines + 1 < lineCount else { throw .countMismatch }
        break
      }
      line += rest
      guard line.count <= DownLine.bytesMax else { throw .tooLarge }
      if try !refill() {
        guard lines + 1 == lineCount else { throw .countMismatch }
        break
      }
    }
    guard line.count <= DownLine.bytesMax else { throw .tooLarge }
    // A block that is said to be compressed and is not, or the other way round, does not begin with an object.
    guard lines > 0 || line.first == UInt8(ascii: "{") else { throw .unpackFailed }
    lines += 1
    return line
  }

  private func isAtEnd() throws(PacketError) -> Bool {
    guard plainOffset == plain.count else { return false }
    return try !refill()
  }

  /// Replaces the plain bytes, all of which were used. - Returns: false at the end.
  private func refill() throws(PacketError) -> Bool {
    (plain, plainOffset) = ([], 0)
    while true {
      if !unpacker.isEnd {
        let piece = try unpacker.unpack(packed, from: &packedOffset)
        unpackedBytes += piece.count
        guard unpackedBytes <= unpackedBytesMax else { throw .tooLarge }
        if !piece.isEmpty {
          plain = piece
          return true
        }
      }
      guard packedOffset == packed.count else {
        // Bytes behind the content, or a content that does not go on.
        throw .unpackFailed
      }
      guard let next = try block.next() else {
        guard unpacker.isEnd || unpacker is StoredPieceUnpacker else { throw .unpackFailed }
        return false
      }
      (packed, packedOffset) = (next, 0)
    }
  }
}
