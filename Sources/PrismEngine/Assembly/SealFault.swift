import PrismPacket

/// Why a packet can't be encrypted.
enum SealFault: Error, Sendable, CustomStringConvertible {
  /// `internal` without memory or randomness.
  case packet(PacketError)
  case key(KeyUse.Fault)

  var description: String {
    switch self {
    case .packet(let error): error.rawValue
    case .key(let fault): fault.description
    }
  }
}
