import PrismBase
public import PrismProtocol

/// A dictionary as it travels: one block, packed by gzip and encrypted with the key of the device that asked. A dictionary
/// holds pieces of reports, so it is protected as they are.
public struct DictionaryAnswer: Sendable, Equatable {
  /// The most bytes of an answer's body.
  public static let bodyBytesMax = CompressionDictionary.bytesMax + 4096

  /// The block.
  public var body: [UInt8]
  /// The value of `Prism-Mac`; nil if the cipher authenticates by itself.
  public var mac: String?

  public init(body: [UInt8], mac: String?) { (self.body, self.mac) = (body, mac) }

  /// Encrypts `dictionary` for who asked.
  /// - Throws: `keyLength`, `internal`.
  public init(
    _ dictionary: CompressionDictionary, to question: DictionaryQuestion, key: Secret
  ) throws(PacketError) {
    let codec = try Self.codec(question, key)
    body = try codec.encrypt(codec.compressor.pack(dictionary.bytes), associated: question.context + "0".utf8)
    let code = question.cipher == .aes128CBC ? try PacketCode(key: key) : nil
    mac = try code.map { (code) throws(PacketError) in
      Hex.encode(try code.code(context: question.context, body: body))
    }
  }

  /// - Throws: `decryptionFailed`, `macMismatch`, `unpackFailed` for anything that is not a dictionary for this question
  ///   under this key; `tooLarge` before it is unpacked.
  public func dictionary(for question: DictionaryQuestion, key: Secret) throws(PacketError) -> CompressionDictionary {
    let codec = try Self.codec(question, key)
    if question.cipher == .aes128CBC { try PacketCode(key: key).check(mac, context: question.context, body: body) }
    let packed = try codec.decrypt(body[...], associated: question.context + "0".utf8)
    guard try codec.compressor.unpackedBytes(packed) <= CompressionDictionary.bytesMax else { throw .tooLarge }
    guard let dictionary = CompressionDictionary(try codec.compressor.unpack(packed)) else { throw .unpackFailed }
    return dictionary
  }

  private static func codec(_ question: DictionaryQuestion, _ key: Secret) throws(PacketError) -> CompressedBlockCodec {
    try CompressedBlockCodec(question.cipher, key: key, compressor: GzipCompressor())
  }
}
