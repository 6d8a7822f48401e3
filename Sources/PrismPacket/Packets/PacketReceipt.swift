import PrismBase
public import PrismProtocol

/// The proof that an answer to a packet comes from a holder of the key (docs/packet.md, "The receipt"). It is the value of
/// `Prism-Receipt`; of `Prism-Verdict` if the packet is refused.
public struct PacketReceipt: Sendable {
  private let key: Secret
  /// The digits of a refusal's status; empty in a receipt.
  private let status: [UInt8]

  /// - Parameter key: the one that the packet's blocks are encrypted with.
  /// - Parameter status: of the refusal that is proven; nil: the packet is taken.
  public init(key: Secret, refusal status: Int? = nil) throws(PacketError) {
    self.key = try Hashing.hkdfSHA256(key: key, info: status == nil ? "prism2 receipt" : "prism2 verdict")
    self.status = status.map { Array(String($0).utf8) } ?? []
  }

  /// - Parameter answer: the body of the answer that carries the proof.
  public func text(for headers: PacketHeaders, answer: [UInt8]) throws(PacketError) -> String {
    "\(headers.packetID) \(Hex.encode(try code(headers, answer)))"
  }

  /// Whether `text` is the proof for exactly this attempt and this answer. Takes as long for any wrong code.
  public func isValid(_ text: String, for headers: PacketHeaders, answer: [UInt8]) -> Bool {
    let words = text.split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 2, words[0] == headers.packetID.description, let given = Hex.decode(String(words[1])),
      let expected = try? code(headers, answer)
    else { return false }
    return Hashing.areEqual(given, expected)
  }

  private func code(_ headers: PacketHeaders, _ answer: [UInt8]) throws(PacketError) -> [UInt8] {
    try Hashing.hmacSHA256(key: key, headers.context + status + Hashing.sha256(answer))
  }
}
