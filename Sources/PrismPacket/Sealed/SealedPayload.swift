import COpenSSL
import PrismBase
public import PrismProtocol

/// A payload that only the receiver can read (docs/packet.md, "Sealed payloads"):
///
///     "PSL1"  ephemeral public key (32)  AES-256-GCM of gzip of the payload, tag (16) at the end
///
/// Key and nonce are HKDF-SHA-256 of the shared secret of X25519. Each payload has its own ephemeral key.
public enum SealedPayload {
  /// The first bytes of a sealed payload.
  public static let magic = Array("PSL1".utf8)
  /// Bytes that sealing adds to the compressed payload.
  public static let overheadBytes = magic.count + SealingPublicKey.byteCount + 16

  /// - Throws: `internal`, and `decryptionFailed` for a public key of small order.
  public static func seal(
    _ payload: [UInt8], to receiver: SealingPublicKey, of report: SealedReport
  ) throws(PacketError) -> [UInt8] {
    let ephemeral = try SealingPrivateKey()
    return try seal(payload, to: receiver, of: report, ephemeral: ephemeral)
  }

  static func seal(
    _ payload: [UInt8], to receiver: SealingPublicKey, of report: SealedReport, ephemeral: SealingPrivateKey
  ) throws(PacketError) -> [UInt8] {
    let shared = try ephemeral.shared(with: receiver)
    let (codec, nonce) = try parts(shared, ephemeral: ephemeral.publicKey, receiver: receiver)
    let fast = try GzipCompressor(.fast)
    let packed =
      try ShrinkProbe.shrinks([payload], pack: fast.compress)
      ? try fast.compress(payload) : try GzipCompressor(.stored).compress(payload)
    let block = try codec.encrypt(packed, associated: report.associated, nonce: nonce)
    return magic + ephemeral.publicKey.bytes + block.dropFirst(nonce.count)
  }

  /// - Throws: `shortHeader`, `decryptionFailed` for another key, another report or a changed byte, `unpackFailed`,
  ///   `tooLarge`.
  public static func open(
    _ sealed: [UInt8], with key: SealingPrivateKey, of report: SealedReport, bytesMax: Int
  ) throws(PacketError) -> [UInt8] {
    let contents = try contents(of: sealed, with: key, of: report)
    guard contents.byteCount <= bytesMax else { throw .tooLarge }
    return try contents.unpacked()
  }

  /// The payload that was sealed, still packed, so that its size is known before the memory is taken.
  public struct Contents {
    fileprivate let packed: [UInt8]
    /// Bytes of the payload, as its last four bytes say (RFC 1952, ISIZE); more are not unpacked.
    public var byteCount: Int { packed.suffix(4).reversed().reduce(0) { $0 << 8 | Int($1) } }

    /// - Throws: `unpackFailed`, `tooLarge` past `byteCount`.
    public func unpacked() throws(PacketError) -> [UInt8] { try gunzip(packed[...], bytesMax: byteCount) }
  }

  /// - Throws: `shortHeader`, `decryptionFailed` for another key, another report or a changed byte.
  public static func contents(
    of sealed: [UInt8], with key: SealingPrivateKey, of report: SealedReport
  ) throws(PacketError) -> Contents {
    guard sealed.count >= overheadBytes, sealed.starts(with: magic),
      let ephemeral = SealingPublicKey(Array(sealed.dropFirst(magic.count).prefix(SealingPublicKey.byteCount)))
    else { throw .shortHeader }
    let shared = try key.shared(with: ephemeral)
    let (codec, nonce) = try parts(shared, ephemeral: ephemeral, receiver: key.publicKey)
    let block = nonce + sealed.dropFirst(magic.count + SealingPublicKey.byteCount)
    return Contents(packed: try codec.decrypt(block[...], associated: report.associated))
  }

  private static func parts(
    _ shared: Secret, ephemeral: SealingPublicKey, receiver: SealingPublicKey
  ) throws(PacketError) -> (CompressedBlockCodec, nonce: [UInt8]) {
    let material = try Hashing.hkdfSHA256(
      key: shared, salt: ephemeral.bytes + receiver.bytes, info: Array("prism2 seal".utf8), count: 44)
    var key = material.withBytes { Array($0[..<32]) }
    return (try CompressedBlockCodec(.aes256GCM, key: Secret(taking: &key)), material.withBytes { Array($0[32...]) })
  }
}

/// Which report a sealed payload belongs to: it opens as no other's.
public struct SealedReport: Sendable, Equatable {
  /// The device that sealed it.
  public var deviceID: String
  /// The namespace of the report.
  public var namespace: NamespaceName
  /// The id of the report.
  public var reportID: String

  public init(deviceID: String, namespace: NamespaceName, reportID: String) {
    (self.deviceID, self.namespace, self.reportID) = (deviceID, namespace, reportID)
  }

  var associated: [UInt8] { Array("prism2 seal\n\(deviceID)\n\(namespace)\n\(reportID)\n".utf8) }
}

// The key of a device leaves the collector sealed to the device's own public key (docs/collector.md, "Devices").
extension EnrolledKey {
  /// - Returns: `sealedKey`: a sealed payload in base64, which belongs to the namespace `prism` and the report `enroll KEY-ID`.
  /// - Throws: `decryptionFailed` for a public key of small order.
  public static func seal(
    _ key: Secret, id: String, of device: String, to receiver: SealingPublicKey
  ) throws(PacketError) -> String {
    Base64.encode(try SealedPayload.seal(key.bytes, to: receiver, of: place(id, device)))
  }

  /// - Returns: the 32 bytes of the key.
  /// - Throws: `decryptionFailed` for another key pair, another device or a changed byte; `shortHeader`, `tooLarge`.
  public func open(with pair: SealingPrivateKey, of device: String) throws(PacketError) -> [UInt8] {
    guard let sealed = Base64.decode(Array(sealedKey.utf8)) else { throw .shortHeader }
    let key = try SealedPayload.open(sealed, with: pair, of: Self.place(keyID, device), bytesMax: 32)
    guard key.count == 32 else { throw .keyLength }
    return key
  }

  private static func place(_ id: String, _ device: String) -> SealedReport {
    SealedReport(deviceID: device, namespace: .prism, reportID: "enroll \(id)")
  }
}
