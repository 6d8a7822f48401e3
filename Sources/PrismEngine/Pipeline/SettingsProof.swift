import PrismProtocol

/// Which settings a collector has answered packets under. Pure.
struct SettingsProof {
  /// Of the settings; those that the packets on their way left under; the last one under which a packet was accepted.
  private var edition = 0
  private var posted: [PacketID: (edition: Int, url: String?)] = [:]
  private var acceptedEdition: Int?
  /// The url at which a packet was accepted, or refused with a code of docs/packet.md, last.
  private(set) var url: String?

  /// A packet was accepted under the settings in force.
  var isProven: Bool { acceptedEdition == edition }

  mutating func changed() { edition += 1 }

  mutating func left(_ packet: PacketID, to url: String?) { posted[packet] = (edition, url) }

  mutating func accepted(_ packet: PacketID) {
    guard let left = posted[packet] else { return }
    acceptedEdition = max(acceptedEdition ?? 0, left.edition)
    url = left.url
  }

  /// Call it behind `accepted`.
  mutating func answered(_ packet: PacketID, _ outcome: DeliveryOutcome) {
    guard let left = posted.removeValue(forKey: packet) else { return }
    if case .misconfigured(_, .some, _) = outcome.verdict { url = left.url }
  }
}
