import COpenSSL
import PrismBase
public import PrismProtocol

/// The public keys of a JSON Web Key Set (RFC 7517) that sign by RS256 or ES256. Keys of other kinds are passed over.
public struct WebKeys: Sendable, Equatable {
  /// Bytes of a modulus: 2,048 to 8,192 bits.
  private static let modulusBytes = 256...1024
  private static let keysMax = 64

  private struct Key: Equatable {
    let id: String?
    let algorithm: String
    /// The modulus and the exponent, or the two coordinates of a point.
    let numbers: [[UInt8]]
  }

  private let keys: [Key]

  /// Of bytes that are no such set.
  public static let fault = "holds no JSON Web Key Set with a key for RS256 of 2,048 bits or more, or for ES256"

  /// - Returns: nil for anything but a set with 1 to 64 keys that can be used.
  public init?(parsing bytes: [UInt8]) {
    guard let set = try? JSONValue(parsing: bytes), let members = set["keys"]?.array else { return nil }
    keys = members.compactMap(Self.key)
    guard (1...Self.keysMax).contains(keys.count) else { return nil }
  }

  private static func key(_ member: JSONValue) -> Key? {
    let (isRSA, isPoint) = (member["kty"]?.string == "RSA", member["kty"]?.string == "EC" && member["crv"] == "P-256")
    guard isRSA || isPoint, (member["use"] ?? "sig") == "sig" else { return nil }
    let algorithm = isRSA ? "RS256" : "ES256"
    let numbers = (isRSA ? ["n", "e"] : ["x", "y"]).compactMap { decode(member[$0]?.string ?? "") }
    guard numbers.count == 2, (member["alg"]?.string ?? algorithm) == algorithm,
      isRSA ? modulusBytes.contains(numbers[0].count) : numbers.allSatisfy({ $0.count == 32 })
    else { return nil }
    return Key(id: member["kid"]?.string, algorithm: algorithm, numbers: numbers)
  }

  /// The claims of a JSON Web Token (RFC 7519) that one of the keys signed. They are judged by the caller.
  /// - Returns: nil for any other text.
  public func claims(of token: String) -> JSONValue? {
    let parts = token.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 3, let head = Self.json(parts[0]), let signature = Self.decode(parts[2]),
      // Extensions that a reader must know.
      head["crit"] == nil
    else { return nil }
    let (text, id, algorithm) = (Array((parts[0] + "." + parts[1]).utf8), head["kid"]?.string, head["alg"]?.string)
    // A key has one algorithm, so a token can't choose another for it.
    let isSigned = keys.contains { key in
      key.algorithm == algorithm && (id == nil || key.id == nil || id == key.id)
        && Self.isValid(signature, of: text, by: key)
    }
    return isSigned ? Self.json(parts[1]) : nil
  }

  private static func isValid(_ signature: [UInt8], of text: [UInt8], by key: Key) -> Bool {
    let (a, b) = (key.numbers[0], key.numbers[1])
    return prism_web_signature(
      key.algorithm == "RS256" ? 1 : 0, a, a.count, b, b.count, text, text.count, signature, signature.count) == 1
  }

  private static func json(_ part: Substring) -> JSONValue? {
    decode(part).flatMap { try? JSONValue(parsing: $0) }.flatMap { $0.object == nil ? nil : $0 }
  }

  /// Base64 of RFC 4648, section 5, without padding.
  private static func decode(_ text: some StringProtocol) -> [UInt8]? {
    let standard = text.utf8.map { byte -> UInt8 in
      switch byte {
      case UInt8(ascii: "-"): UInt8(ascii: "+")
      case UInt8(ascii: "_"): UInt8(ascii: "/")
      case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): 0
      default: byte
      }
    }
    return Base64.decode(standard + [UInt8](repeating: UInt8(ascii: "="), count: -standard.count & 3))
  }
}
