public import PrismProtocol

/// The headers of a packet, version 2 (docs/packet.md, "The POST").
///
/// All that means something is authenticated with the body: a packet with any other value does not open.
public struct PacketHeaders: Sendable, Equatable {
  /// The value of `Prism-Version`.
  public static let version = "2"

  /// The device that sends it.
  public var deviceID: String
  /// The namespace of its rows.
  public var namespace: NamespaceName
  /// The id, the same in each attempt.
  public var packetID: PacketID
  /// Metas, or metas with payloads.
  public var kind: RowKind
  /// The packet before this one of the same device, namespace and kind; nil for the first.
  public var dependsOn: PacketID?
  /// Rows in it; 1 or more.
  public var itemCount: Int
  /// The accounts in `Prism-Ledger`; empty without them.
  public var ledger: String
  /// Packets before this one in its stream that have no receipt yet: the last member of `Prism-Ledger`. The receiver must
  /// not take the packet without them.
  public var pendingCount: Int
  /// When this attempt began by the device's clock: milliseconds since 1970. Each attempt has its own. nil: the sender says nothing.
  public var sentTime: Int64?
  /// Cipher, key and compression of the blocks.
  public var format: BlockFormat

  public init(
    deviceID: String, namespace: NamespaceName, packetID: PacketID, kind: RowKind, dependsOn: PacketID? = nil,
    itemCount: Int, ledger: String = "", pendingCount: Int = 0, sentTime: Int64?, format: BlockFormat
  ) {
    (self.deviceID, self.namespace, self.packetID, self.kind) = (deviceID, namespace, packetID, kind)
    (self.dependsOn, self.itemCount, self.ledger, self.pendingCount) = (dependsOn, itemCount, ledger, pendingCount)
    (self.sentTime, self.format) = (sentTime, format)
  }

  /// The context that binds the blocks and the receipt to this packet: a line each, an empty one for an absent header. Its last
  /// line, `Prism-Form`, is absent with the header.
  public var context: [UInt8] {
    let lines = [
      "prism2", deviceID, namespace.text, packetID.description, kind.name, dependsOn?.description ?? "",
      String(itemCount), ledgerField, sentTime.map { String($0) } ?? "",
    ]
    var text: [UInt8] = []
    text.reserveCapacity(512)
    for line in lines + (format.form == .rows ? [] : [format.form.rawValue]) {
      text += line.utf8
      text.append(UInt8(ascii: "\n"))
    }
    return text
  }
}

/// How a packet's blocks are made, as its headers name it.
public struct BlockFormat: Sendable, Equatable {
  /// The cipher of the blocks.
  public var cipher: Cipher
  /// The id of the key.
  public var keyID: String
  /// The compression of the blocks.
  public var encoding: PacketEncoding
  /// `Prism-Dictionary`: with zstd, the dictionary's id; nil without a dictionary.
  public var dictionaryID: UInt32?
  /// `Prism-Form`: how the meta block holds its rows.
  public var form: PacketForm

  public init(
    cipher: Cipher, keyID: String, encoding: PacketEncoding, dictionaryID: UInt32? = nil, form: PacketForm = .rows
  ) {
    (self.cipher, self.keyID, self.encoding, self.dictionaryID) = (cipher, keyID, encoding, dictionaryID)
    self.form = form
  }
}
