public import PrismBase
public import PrismProtocol

/// The body of one answer, encrypted while it is read: of any size in the memory of one piece. Not for two threads at once.
public final class DownBody {
  /// The value of `Prism-Mac`; nil if the cipher authenticates by itself.
  public let mac: String?
  /// Bytes of the body.
  public let byteCount: Int

  private let packed: any PieceSource
  private let stream: CipherStream
  private var offset = 0
  private var nonce: [UInt8]?
  private var ready: [UInt8] = []
  private var readyOffset = 0
  private var isFinished = false

  /// - Parameter packed: what a `DownPacker` of the headers' encoding made of `headers.lineCount` lines.
  /// - Parameter key: of the device, for the cipher of the headers. With `aes-128-cbc` the source is read twice.
  /// - Throws: `keyLength` for a key of another length; `internal`, also if the source can't be read.
  public convenience init(_ headers: DownHeaders, packed: any PieceSource, key: Secret) throws(PacketError) {
    let nonce = try Hashing.randomBytes(CipherStream.nonceBytes(headers.format.cipher))
    let mac = headers.format.cipher == .aes128CBC ? try Self.mac(headers, packed, key, nonce) : nil
    try self.init(headers, packed, key, nonce, mac: mac)
  }

  private init(
    _ headers: DownHeaders, _ packed: any PieceSource, _ key: Secret, _ nonce: [UInt8], mac: String?
  ) throws(PacketError) {
    let cipher = headers.format.cipher
    (self.packed, self.mac, self.nonce) = (packed, mac, nonce)
    byteCount = CipherStream.blockBytes(cipher, plainBytes: packed.byteCount)
    stream = try CipherStream(
      cipher, key: key, nonce: nonce, associated: headers.context + Array("0".utf8), isSealing: true)
  }

  /// Encrypts all of it once, with the same nonce, for the code that goes before it.
  private static func mac(
    _ headers: DownHeaders, _ packed: any PieceSource, _ key: Secret, _ nonce: [UInt8]
  ) throws(PacketError) -> String {
    let body = try DownBody(headers, packed, key, nonce, mac: nil)
    return Hex.encode(try PacketCode(key: key).code(context: headers.context, body.next))
  }

  /// Reads on. - Returns: the bytes that were written to `buffer`; 0 at the end.
  /// - Throws: `internal` if the source can't be read, or has become shorter.
  public func read(into buffer: UnsafeMutableRawBufferPointer) throws(PacketError) -> Int {
    if readyOffset == ready.count { (ready, readyOffset) = (try next() ?? [], 0) }
    let count = min(buffer.count, ready.count - readyOffset)
    buffer.copyBytes(from: ready[readyOffset..<(readyOffset + count)])
    readyOffset += count
    return count
  }

  /// nil at the end.
  private func next() throws(PacketError) -> [UInt8]? {
    if let nonce = nonce.take() { return nonce }
    while offset < packed.byteCount {
      let piece = try packed.piece(at: offset, before: packed.byteCount)
      offset += piece.count
      let sealed = try stream.update(piece[...])
      if !sealed.isEmpty { return sealed }
    }
    guard !isFinished else { return nil }
    isFinished = true
    let rest = try stream.finish()
    return rest.isEmpty ? nil : rest
  }
}

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
