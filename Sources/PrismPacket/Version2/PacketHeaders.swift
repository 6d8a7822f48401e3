public import PrismProtocol

/// What the headers of a packet say, version 2 (docs/packet.md, "The POST").
///
/// All that means something is authenticated with the body: a packet with any other value does not open.
public struct PacketHeaders: Sendable, Equatable {
  public static let version = "2"

  public var deviceID: String
  public var namespace: NamespaceName
  public var packetID: PacketID
  public var kind: ReportKind
  /// The packet before this one of the same device, namespace and kind; nil for the first.
  public var dependsOn: PacketID?
  /// Rows in it; 1 or more.
  public var itemCount: Int
  /// The value of `Prism-Ledger`; empty if there is none.
  public var ledger: String
  /// When this attempt began by the device's clock: milliseconds since 1970. Each attempt has its own.
  public var sentTime: Int64
  public var format: BlockFormat

  public init(
    deviceID: String, namespace: NamespaceName, packetID: PacketID, kind: ReportKind, dependsOn: PacketID? = nil,
    itemCount: Int, ledger: String = "", sentTime: Int64, format: BlockFormat
  ) {
    (self.deviceID, self.namespace, self.packetID, self.kind) = (deviceID, namespace, packetID, kind)
    (self.dependsOn, self.itemCount, self.ledger, self.sentTime) = (dependsOn, itemCount, ledger, sentTime)
    self.format = format
  }

  /// What binds the blocks and the receipt to this packet: a line each, an empty one for an absent header.
  public var context: [UInt8] {
    let lines = [
      "prism2", deviceID, namespace.text, packetID.description, kind.rawValue, dependsOn?.description ?? "",
      String(itemCount), ledger, String(sentTime),
    ]
    return Array(lines.map { $0 + "\n" }.joined().utf8)
  }
}

/// How a packet's blocks are compressed and encrypted, as its headers name it.
public struct BlockFormat: Sendable, Equatable {
  public var cipher: Cipher
  public var keyID: String
  public var encoding: PacketEncoding
  /// `Prism-Dictionary`: with zstd, the dictionary's id; nil: none is used.
  public var dictionaryID: UInt32?

  public init(cipher: Cipher, keyID: String, encoding: PacketEncoding, dictionaryID: UInt32? = nil) {
    (self.cipher, self.keyID, self.encoding, self.dictionaryID) = (cipher, keyID, encoding, dictionaryID)
  }
}
