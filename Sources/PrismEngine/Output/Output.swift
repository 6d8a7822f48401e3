public import PrismConfig
public import PrismPacket
public import PrismProtocol

/// Hands packets to a receiver. docs/extending.md, "Add an output", walks through another implementation.
public protocol Output: Sendable {
  /// Hands one packet on and says what came of it. Never throws, so that no caller can forget a case.
  ///
  /// The daemon deletes the packet's rows once the verdict is `accepted`: give it only if the packet survives a crash of
  /// the receiver. A packet may come again under the same id after any other verdict, and after a restart; a receiver
  /// keeps it once. If the task is cancelled, the output stops its work and answers `cancelled`.
  func deliver(_ packet: OutgoingPacket) async -> DeliveryOutcome
}

/// One attempt to deliver a packet.
public struct OutgoingPacket: Sendable {
  /// The headers of the packet; all of them are authenticated with the body (docs/packet.md).
  public var headers: PacketHeaders
  /// Encrypted.
  public var body: [UInt8]
  /// The value of `Prism-Mac`; nil if the cipher authenticates by itself.
  public var mac: String?
  /// An answer to an earlier attempt may have been meant for another request.
  public var needsNewConnection: Bool
  /// Of the packet's namespace: where it goes.
  public var configuration: NamespaceConfiguration
  /// The one that the packet is encrypted with: a receipt is proven with it.
  public var key: Secret

  /// The packet's id.
  public var id: PacketID { headers.packetID }

  /// Bytes that an attempt costs on a metered network, headers and an ordinary answer included. They are booked before
  /// it begins, and replaced by those of its outcome.
  static func estimatedBytes(bodyBytes: Int) -> Int { bodyBytes + 2048 }
}
