import CZstd
import PrismProtocol

/// Unpacks gzip members or zstd frames, one after the other and piece by piece, so that what they unpack to needs no memory as a
/// whole.
package final class PackedReader {
  private let input: [UInt8]
  private let encoding: PacketEncoding
  private var unpacker: any PieceUnpacker
  private var offset = 0
  /// The last member has ended, or the input is damaged from here on.
  package private(set) var isAtEnd = false
  /// The input is not packed so, or ends within a member.
  package private(set) var isDamaged = false

  /// - Throws: `internal`: no memory.
  package init(_ bytes: ArraySlice<UInt8>, _ encoding: PacketEncoding) throws(PacketError) {
    (input, self.encoding) = (Array(bytes), encoding)
    unpacker = try encoding.pieceUnpacker()
  }

  /// Appends some `count` bytes; fewer at the end.
  package func read(_ count: Int, into output: inout [UInt8]) {
    let end = output.count + count
    while output.count < end, !isAtEnd {
      do throws(PacketError) { output += try next() } catch { (isAtEnd, isDamaged) = (true, true) }
    }
  }

  private func next() throws(PacketError) -> [UInt8] {
    if unpacker.isEnd { unpacker = try encoding.pieceUnpacker() }
    let before = offset
    let piece = try unpacker.unpack(input, from: &offset)
    guard !piece.isEmpty || offset > before || unpacker.isEnd else { throw .unpackFailed }  // it ends within a member
    isAtEnd = unpacker.isEnd && offset == input.count
    return piece
  }

  /// All of it. - Throws: `tooLarge` as soon as more than `bytesMax` come out; `unpackFailed` for damaged input.
  package static func unpack(
    _ bytes: ArraySlice<UInt8>, _ encoding: PacketEncoding, bytesMax: Int
  ) throws(PacketError) -> [UInt8] {
    if encoding == .gzip { return try gunzip(bytes, bytesMax: bytesMax, takesSeveral: true) }
    let reader = try PackedReader(bytes, encoding)
    var result: [UInt8] = []
    let said = bytes.withUnsafeBytes { ZSTD_getFrameContentSize($0.baseAddress, $0.count) }
    // An array that grows step by step is held twice. The unknown size is a huge number.
    if let said = Int(exactly: said), said <= bytesMax { result.reserveCapacity(said) }
    while !reader.isAtEnd {
      reader.read(64 * 1024, into: &result)
      if result.count > bytesMax { throw .tooLarge }
    }
    if reader.isDamaged { throw .unpackFailed }
    return result
  }
}
