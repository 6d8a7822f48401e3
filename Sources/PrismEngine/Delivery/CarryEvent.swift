import PrismProtocol

/// An event of carrying by file (docs/carrying.md).
enum CarryEvent: Sendable {
  /// Packets are handed to a carrier from here on, though a gate keeps them.
  case begins
  case ends
  /// The packets in flight must be known before an answer is `returned`.
  case recovery
  /// The answer to a packet came back in a file.
  case returned(PacketID, DeliveryOutcome)
}
