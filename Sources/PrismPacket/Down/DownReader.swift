public import PrismBase
public import PrismProtocol

/// Opens answers with a table's changes, trusting nothing in them. Every refusal has its reason (`PacketError`).
public struct DownReader: Sendable {
  private let key: Secret
  private let unpackedBytesMax: Int

  /// - Parameter key: of this device.
  /// - Parameter unpackedBytesMax: over all lines; more of them are refused when they come.
  public init(key: Secret, unpackedBytesMax: Int) {
    (self.key, self.unpackedBytesMax) = (key, unpackedBytesMax)
  }

  /// Verifies the whole body: only then is anything unpacked. The body is read here and once more for its lines.
  /// - Parameter headers: those of the answer, read for the question that was asked.
  /// - Parameter mac: the answer's `Prism-Mac`.
  /// - Throws: `decryptionFailed` or `macMismatch` for a body of other headers or another key, or a changed one;
  ///   `internal`, also if the body can't be read.
  public func open(_ headers: DownHeaders, body: any PieceSource, mac: String?) throws(PacketError) -> DownLines {
    let cipher = headers.format.cipher
    let (nonceBytes, tagBytes) = (CipherStream.nonceBytes(cipher), CipherStream.tagBytes(cipher))
    guard body.byteCount >= nonceBytes + tagBytes else { throw .decryptionFailed }
    if cipher == .aes128CBC { try checkCode(headers, body, mac) }
    let nonce = try body.piece(at: 0, before: nonceBytes)
    let range = nonceBytes..<(body.byteCount - tagBytes)
    let tag = try body.piece(at: range.upperBound, before: body.byteCount)
    func block() throws(PacketError) -> DownBlock {
      let stream = try CipherStream(
        cipher, key: key, nonce: nonce, associated: headers.context + Array("0".utf8), isSealing: false)
      return DownBlock(stream, body, range, tag: tag)
    }
    if cipher != .aes128CBC {
      var verified = try block()
      while try verified.next() != nil {}
    }
    return DownLines(
      try block(), unpacker: try headers.format.encoding.pieceUnpacker(), lineCount: headers.lineCount,
      unpackedBytesMax: unpackedBytesMax)
  }

  private func checkCode(
    _ headers: DownHeaders, _ body: any PieceSource, _ mac: String?
  ) throws(PacketError) {
    var offset = 0
    let expected = try PacketCode(key: key).code(context: headers.context) { () throws(PacketError) in
      guard offset < body.byteCount else { return nil }
      let piece = try body.piece(at: offset, before: body.byteCount)
      offset += piece.count
      return piece
    }
    try PacketCode.check(mac, expected)
  }
}

/// The ciphertext of a body, decrypted piece by piece.
struct DownBlock {
  private let stream: CipherStream
  private let body: any PieceSource
  private let end: Int
  private let tag: [UInt8]
  private var offset: Int
  private var isFinished = false

  init(_ stream: CipherStream, _ body: any PieceSource, _ range: Range<Int>, tag: [UInt8]) {
    (self.stream, self.body, self.tag) = (stream, body, tag)
    (offset, end) = (range.lowerBound, range.upperBound)
  }

  /// The next piece, which may be empty; nil at the end. - Throws: `decryptionFailed`, at the end at last.
  mutating func next() throws(PacketError) -> [UInt8]? {
    if offset < end {
      let piece = try body.piece(at: offset, before: end)
      offset += piece.count
      return try stream.update(piece[...])
    }
    guard !isFinished else { return nil }
    isFinished = true
    return try stream.finish(tag: tag)
  }
}

extension PieceSource {
  /// The next 64 KiB, or what there is before `end`.
  /// - Throws: `internal` if it can't be read, or has become shorter.
  func piece(at offset: Int, before end: Int) throws(PacketError) -> [UInt8] {
    let wanted = min(64 * 1024, end - offset)
    var isRead = false
    let piece = [UInt8](unsafeUninitializedCapacity: max(0, wanted)) { buffer, count in
      count = (try? read(at: offset, into: UnsafeMutableRawBufferPointer(buffer))) ?? 0
      isRead = count == wanted
    }
    guard isRead else { throw .internal }
    return piece
  }
}

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
