import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol

/// Whether an answer is proven to come from a holder of the key: by `Prism-Receipt` if the packet was taken, by `Prism-Verdict`
/// if it was refused (docs/packet.md, "The receipt").
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
  /// A refusal without a proof decides over the packet.
  let trustsRefusals: Bool
  private let key: Secret

  init(_ headers: PacketHeaders, key: Secret, _ configuration: NamespaceConfiguration) {
    self.init(
      headers, key: key, requirement: configuration.receipt, trustsRefusals: configuration.trustsRefusals)
  }

  init(
    _ headers: PacketHeaders, key: Secret, requirement: NamespaceConfiguration.Receipt, trustsRefusals: Bool = false
  ) {
    (self.headers, self.key, self.requirement) = (headers, key, requirement)
    self.trustsRefusals = trustsRefusals
  }

  /// - Parameter receipt: the value of `Prism-Receipt`; nil without one.
  /// - Parameter answer: the body of the answer.
  func check(_ receipt: String?, answer: [UInt8]) -> Result {
    guard let text = receipt?.trimmed else { return .missing }
    guard let named = Self.packetID(named: text) else { return .missing }
    guard named == headers.packetID else { return .foreign }
    let proof = try? PacketReceipt(key: key)
    return proof?.isValid(text, for: headers, answer: answer) == true ? .proven : .named
  }

  /// Whether an answer with this status and body is the verdict of a holder of the key on this attempt.
  /// - Parameter verdict: the value of `Prism-Verdict`; nil without one.
  func isRefusal(_ verdict: String?, status: Int, answer: [UInt8]) -> Bool {
    guard let text = verdict?.trimmed, let proof = try? PacketReceipt(key: key, refusal: status) else {
      return false
    }
    return proof.isValid(text, for: headers, answer: answer)
  }

  /// Whether a 2xx with this receipt settles the packet. `optional` is for a foreign collector.
  func accepts(_ result: Result) -> Bool {
    switch result {
    case .proven: true
    case .named, .missing, .foreign: requirement == .optional
    }
  }

  static func packetID(named receipt: String) -> PacketID? {
    let words = receipt.split(separator: " ", omittingEmptySubsequences: false)
    return words.count <= 2 ? words.first.flatMap { PacketID(String($0)) } : nil
  }
}
