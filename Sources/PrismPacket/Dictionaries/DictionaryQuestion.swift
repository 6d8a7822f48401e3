import PrismBase
public import PrismProtocol

/// The question for the dictionary of a namespace: `GET /prism/dictionary?namespace=NAME` (docs/packet.md, "Dictionaries").
/// Each one has an id of its own, so that no answer is taken for that of another question.
public struct DictionaryQuestion: Sendable, Equatable {
  /// The path below the collector's address.
  public static let path = "/prism/dictionary"
  /// The `Content-Type` of the answer.
  public static let contentType = "application/vnd.prism.dictionary"

  /// The device that asks.
  public var deviceID: String
  /// The namespace of the dictionary.
  public var namespace: NamespaceName
  /// The id of this question.
  public var id: PacketID
  /// The cipher of the answer.
  public var cipher: Cipher
  /// The id of the key of the answer.
  public var keyID: String

  public init(deviceID: String, namespace: NamespaceName, id: PacketID, cipher: Cipher, keyID: String) {
    (self.deviceID, self.namespace, self.id) = (deviceID, namespace, id)
    (self.cipher, self.keyID) = (cipher, keyID)
  }

  /// The headers of the question, without `Authorization`.
  public var fields: [(name: String, value: String)] {
    [
      ("Prism-Version", PacketHeaders.version), ("Prism-Device-Id", deviceID), ("Prism-Packet-Id", id.description),
      ("Prism-Cipher", cipher.rawValue), ("Prism-Key-Id", keyID),
    ]
  }

  /// - Parameter namespace: the parameter of the address.
  /// - Parameter value: the only value of the header with this name, which is in lower case.
  /// - Throws: for the first header that is missing or wrong; `namespace` for the parameter.
  public init(namespace: String?, _ value: @escaping (String) -> String?) throws(PacketHeaderFault) {
    let reader = FieldReader { name in value(name).map { [$0] } ?? [] }
    guard let namespace = namespace.flatMap({ NamespaceName($0) }) else {
      throw PacketHeaderFault(name: "namespace", isMissing: false)
    }
    _ = try reader.required("prism-version") { $0 == PacketHeaders.version ? $0 : nil }
    self.init(
      deviceID: try reader.required("prism-device-id", FieldReader.deviceID),
      namespace: namespace,
      id: try reader.required("prism-packet-id") { PacketID($0) },
      cipher: try reader.required("prism-cipher") { Cipher(rawValue: $0) },
      keyID: try reader.required("prism-key-id") { $0.isEmpty ? nil : $0 })
  }

  /// Binds the answer to this question: as the context of a packet, of the kind `dictionary` and without what a question
  /// does not have.
  var context: [UInt8] {
    let lines = ["prism2", deviceID, namespace.text, id.description, "dictionary", "", "", "", ""]
    return Array(lines.map { $0 + "\n" }.joined().utf8)
  }
}

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
