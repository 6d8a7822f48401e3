/// Why a collector does not take a packet: the member `code` of its answer (docs/packet.md, What to answer).
public enum PacketRefusal: String, Sendable, CaseIterable {
  // No packet of this sender would get through.
  case token, revoked, unknownKey, keyLength, decryptionFailed, macMismatch, header, version, contentType
  // The packet as it is encoded: it gets through without the dictionary.
  case unknownDictionary
  // This packet alone.
  case shortHeader, lengthMismatch, unpackFailed, tooLarge, countMismatch, metaSyntax

  /// Whether the fault is in the keys or the headers: then the answer would be the same for any rows.
  public var isOfConfiguration: Bool {
    switch self {
    case .token, .revoked, .unknownKey, .keyLength, .decryptionFailed, .macMismatch, .header, .version, .contentType:
      true
    case .unknownDictionary, .shortHeader, .lengthMismatch, .unpackFailed, .tooLarge, .countMismatch, .metaSyntax: false
    }
  }
}
