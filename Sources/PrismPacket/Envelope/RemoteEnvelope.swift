import PrismBase
public import PrismProtocol

/// The envelope of remote configuration (docs/remote-configuration.md):
/// `{"message":…,"code":1000,"data":D,"signature":S}`. D is base64 of gzip of a document, S base64 of the Ed25519
/// signature over the characters of D.
public enum RemoteEnvelope {
  /// The one code that brings a document.
  public static let code = 1000
  /// Of D, base64 taken off.
  public static let packedBytesMax = 1_048_576
  /// The largest document.
  public static let unpackedBytesMax = 8 * 1_048_576
  /// Of the whole: D and 64 KiB for the rest.
  public static let bytesMax = (packedBytesMax + 2) / 3 * 4 + 65_536
  private static let valuesMax = 1000

  /// - Parameter key: signs; nil: the envelope has no signature.
  /// - Throws: `tooLarge` for what no receiver would take, `internal`.
  public static func seal(_ document: [UInt8], key: SigningKey?) throws(PacketError) -> [UInt8] {
    let packed = try GzipCompressor().compress(document)
    guard document.count <= unpackedBytesMax, packed.count <= packedBytesMax else { throw .tooLarge }
    let data = Base64.encode(packed)
    var members: [JSONValue.Member] = [.init("message", "ok"), .init("code", .int(code)), .init("data", .string(data))]
    if let key {
      members.append(.init("signature", .string(Base64.encode(try key.signature(of: Array(data.utf8))))))
    }
    return JSONValue.object(members).bytes
  }

  /// The document in `answer`. Nothing of it is unpacked before its signature holds.
  /// - Parameter publicKey: who must have signed; nil: a signature is not asked for, and not looked at.
  public static func open(_ answer: [UInt8], publicKey: [UInt8]?) throws(RemoteEnvelopeFault) -> [UInt8] {
    let envelope: JSONValue
    do { envelope = try JSONValue(parsing: answer, depthMax: 8, valuesMax: valuesMax) } catch {
      throw .notJSON(error)
    }
    guard envelope["code"]?.int == code else { throw .code(envelope["code"], message: envelope["message"]?.string) }
    guard let text = envelope["data"]?.string else { throw .noData }
    let data = Array(text.utf8)
    if let publicKey { try check(envelope["signature"], of: data, publicKey) }
    guard let packed = Base64.decode(data) else { throw .notBase64 }
    guard packed.count <= packedBytesMax else { throw .packedTooLarge(bytes: packed.count) }
    do { return try gunzip(packed[...], bytesMax: unpackedBytesMax) } catch {
      throw error == .tooLarge ? .unpackedTooLarge : .notGzip
    }
  }

  private static func check(
    _ signature: JSONValue?, of data: [UInt8], _ publicKey: [UInt8]
  ) throws(RemoteEnvelopeFault) {
    guard let signature, !signature.isNull else { throw .unsigned }
    guard let bytes = signature.string.flatMap({ Base64.decode(Array($0.utf8)) }),
      Ed25519.isValid(bytes, of: data, publicKey: publicKey)
    else { throw .wrongSignature }
  }
}

/// Why an answer is no envelope with a document.
public enum RemoteEnvelopeFault: Error, Sendable, Equatable, CustomStringConvertible {
  case notJSON(JSONError)
  case code(JSONValue?, message: String?)
  case noData, notBase64, notGzip
  case packedTooLarge(bytes: Int)
  case unpackedTooLarge
  case unsigned, wrongSignature

  public var description: String {
    switch self {
    case .notJSON(let error): "the answer is \(error)"
    case .code(let code, let message):
      "the answer's code is \(code.map { $0.text.shownFromOutside } ?? "missing"), must be \(RemoteEnvelope.code)"
        + (message.map { "; the server says: \($0.shownFromOutside)" } ?? "")
    case .noData: "the answer has no `data`, a string"
    case .notBase64: "the answer's `data` is not base64 (RFC 4648, padded)"
    case .notGzip: "the answer's `data` is not one whole gzip member"
    case .packedTooLarge(let bytes):
      "the answer's `data` is \(bytes) bytes packed, must be at most \(RemoteEnvelope.packedBytesMax)"
    case .unpackedTooLarge: "the answer's `data` unpacks to over \(RemoteEnvelope.unpackedBytesMax) bytes"
    case .unsigned: "the answer is unsigned; with remote.publicKey every answer needs a `signature`"
    case .wrongSignature: "the answer's signature is not that of remote.publicKey over `data`"
    }
  }
}

extension String {
  /// Text of another side, as one line of at most 200 characters.
  package var shownFromOutside: String {
    let line = printable
    return line.count > 200 ? line.prefix(197) + "..." : line
  }
}
