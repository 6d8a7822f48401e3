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
