import PrismConfig
import PrismPacket
import PrismProtocol

/// Whether the `Prism-Receipt` of an answer proves that a holder of the key took the packet (docs/packet.md, "The
/// receipt").
struct ReceiptCheck: Sendable {
  enum Result: Sendable, Equatable {
    /// The code is the one of this packet, this attempt and this answer.
    case proven
    /// It names the packet, without a proof.
    case named
    /// The answer has no receipt, or a foreign collector's own, which names no packet.
    case missing
    /// It names another packet: it may be the answer to another request.
    case foreign
  }

  let headers: PacketHeaders
  let requirement: NamespaceConfiguration.Receipt
  private let key: Secret

  init(_ packet: OutgoingPacket) {
    self.init(packet.headers, key: packet.key, requirement: packet.configuration.receipt)
  }

  init(_ headers: PacketHeaders, key: Secret, requirement: NamespaceConfiguration.Receipt) {
    (self.headers, self.key, self.requirement) = (headers, key, requirement)
  }

  /// - Parameter receipt: the value of `Prism-Receipt`; nil without one.
  /// - Parameter answer: the body of the answer.
  func check(_ receipt: String?, answer: [UInt8]) -> Result {
    guard let text = receipt?.trimmingBlanks else { return .missing }
    guard let named = Self.packetID(named: text) else { return .missing }
    guard named == headers.packetID else { return .foreign }
    let proof = try? PacketReceipt(key: key)
    return proof?.isValid(text, for: headers, answer: answer) == true ? .proven : .named
  }

  /// Whether a 2xx with this receipt settles the packet. `optional` is for a foreign collector.
  func accepts(_ result: Result) -> Bool {
    switch result {
    case .proven: true
    case .named, .missing, .foreign: requirement == .optional
    }
  }

  /// The packet that a receipt names.
  static func packetID(named receipt: String) -> PacketID? {
    let words = receipt.split(separator: " ", omittingEmptySubsequences: false)
    return words.count <= 2 ? words.first.flatMap { PacketID(String($0)) } : nil
  }
}
