import CZstd

/// Unpacks gzip members or zstd frames, one after the other and piece by piece, so that what they unpack to needs no memory as a
/// whole.
package final class PackedReader {
  private let input: [UInt8]
  private let encoding: PacketEncoding
  private let takesSeveral: Bool
  private var unpacker: any PieceUnpacker
  private var offset = 0
  /// The last member has ended, or the input is damaged from here on.
  package private(set) var isAtEnd = false
  /// The input is not packed so, or ends within a member.
  package private(set) var isDamaged = false

  /// - Parameter takesSeveral: false: anything behind the first member is damage.
  /// - Throws: `internal`: no memory.
  package init(
    _ bytes: ArraySlice<UInt8>, _ encoding: PacketEncoding, takesSeveral: Bool = true
  ) throws(PacketError) {
    (input, self.encoding, self.takesSeveral) = (Array(bytes), encoding, takesSeveral)
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
    isAtEnd = unpacker.isEnd && (offset == input.count || !takesSeveral)
    isDamaged = isAtEnd && offset < input.count
    return piece
  }

  /// All members or frames.
  /// - Parameter takesSeveral: the bytes may be several, one after the other.
  /// - Throws: `tooLarge` as soon as more than `bytesMax` come out; `unpackFailed` for what is cut short, damaged, or followed by
  ///   something.
  package static func unpack(
    _ bytes: ArraySlice<UInt8>, _ encoding: PacketEncoding, bytesMax: Int, takesSeveral: Bool = true
  ) throws(PacketError) -> [UInt8] {
    let reader = try PackedReader(bytes, encoding, takesSeveral: takesSeveral)
    var result: [UInt8] = []
    // An array that grows step by step is held twice.
    if let said = said(bytes, encoding) { result.reserveCapacity(min(said, bytesMax)) }
    while !reader.isAtEnd {
      reader.read(64 * 1024, into: &result)
      if result.count > bytesMax { throw .tooLarge }
    }
    if reader.isDamaged { throw .unpackFailed }
    return result
  }

  /// The bytes that it unpacks to, as the last gzip member or the first zstd frame says (RFC 1952, 2.3.1); nil if it does not.
  private static func said(_ bytes: ArraySlice<UInt8>, _ encoding: PacketEncoding) -> Int? {
    switch encoding {
    case .gzip: bytes.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) }
    // A size that is not known is a huge number.
    case .zstd: Int(exactly: bytes.withUnsafeBytes { ZSTD_getFrameContentSize($0.baseAddress, $0.count) })
    case .none: bytes.count
    }
  }
}

/// Unpacks one gzip member (RFC 1952) that fills `bytes` exactly.
/// - Throws: `tooLarge` as soon as more than `bytesMax` come out; `unpackFailed` for anything else.
public func gunzip(_ bytes: ArraySlice<UInt8>, bytesMax: Int) throws(PacketError) -> [UInt8] {
  try PackedReader.unpack(bytes, .gzip, bytesMax: bytesMax, takesSeveral: false)
}
