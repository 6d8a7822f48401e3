import PrismBase
public import PrismProtocol

/// The proof that a holder of the key took a packet: the value of `Prism-Receipt` (docs/packet.md, "The receipt").
public struct PacketReceipt: Sendable {
  private let key: Secret

  /// - Parameter key: the one that the packet's blocks are encrypted with.
  public init(key: Secret) throws(PacketError) {
    self.key = try Hashing.hkdfSHA256(key: key, info: "prism2 receipt")
  }

  /// - Parameter answer: the body of the answer that carries the receipt.
  public func text(for headers: PacketHeaders, answer: [UInt8]) throws(PacketError) -> String {
    "\(headers.packetID) \(Hex.encode(try code(headers, answer)))"
  }

  /// Whether `text` is the receipt for exactly this attempt and this answer. Takes as long for any wrong code.
  public func isValid(_ text: String, for headers: PacketHeaders, answer: [UInt8]) -> Bool {
    let words = text.split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 2, words[0] == headers.packetID.description, let given = Hex.decode(String(words[1])),
      let expected = try? code(headers, answer)
    else { return false }
    return Hashing.areEqual(given, expected)
  }

  private func code(_ headers: PacketHeaders, _ answer: [UInt8]) throws(PacketError) -> [UInt8] {
    try Hashing.hmacSHA256(key: key, headers.context + Hashing.sha256(answer))
  }
}
