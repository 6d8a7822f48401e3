import PrismBase
import PrismProtocol

extension ValueForm where Value == UnitPattern {
  static var unitPattern: Self {
    .text(
      "a unit's name with * and ?, for example shop-*.service", meaning: { UnitPattern($0) }, show: { .string($0.text) }
    )
  }
}

extension ValueForm where Value == NetworkRange {
  static var networkRange: Self {
    .text(
      "an IPv4 or IPv6 address in numbers, or ADDRESS/BITS for a whole network", types: "string",
      meaning: { NetworkRange($0) }, show: { .string($0.description) })
  }
}

extension ValueForm where Value == String {
  /// A text that is shown as it is held. - Parameter judge: the text to hold; nil after a fault was reported.
  static func judged(
    _ allowed: String, schema: JSONValue = ["type": "string"],
    _ judge: @escaping @Sendable (_ text: String, YAMLNode, _ key: String, inout Checker) -> String?
  ) -> Self {
    ValueForm(allowed: allowed, schema: schema) { node, key, checker in
      guard let text = checker.text(node, key, mustBe: allowed) else { return nil }
      return judge(text, node, key, &checker)
    } show: {
      .string($0)
    }
  }

  /// - Parameters:
  ///   - allowed: what `isSound` asks for, in words.
  ///   - isShown: false keeps a value out of faults: it may be a secret that went astray.
  static func string(
    _ allowed: String, isShown: @escaping @Sendable (String) -> Bool = { _ in true },
    isSound: @escaping @Sendable (String) -> Bool
  ) -> Self {
    .text(allowed, isShown: isShown, meaning: { isSound($0) ? $0 : nil }, show: { .string($0) })
  }

  /// Not empty, and nothing in it that would break a line or a header.
  static func text(bytesMax: Int) -> Self {
    string("text of 1 to \(bytesMax) bytes without control characters") { $0.isPrintable(bytesMax: bytesMax) }
  }

  /// Characters that a header and a query can carry.
  static var visibleASCII: Self {
    string("1 to 128 visible ASCII characters") { $0.isVisibleASCII(bytesMax: 128) }
  }

  /// Digits of a key in the wrong place are not an id, and are not shown.
  static var keyID: Self {
    string(
      "1 to 64 of A-Z a-z 0-9 _ . -", isShown: { _ in false },
      isSound: { !$0.isKeyMaterial && $0.isName(bytesMax: 64, punctuation: "_.-", firstIsAlphanumeric: false) })
  }

  /// A collector's address without its trailing slash. An address with a password is not shown, because faults end in
  /// logs.
  static var collectorURL: Self {
    address("http:// or https://, a host, and a path at most (no user, query or fragment)") { _ in true }
  }

  /// Plain http goes to loopback only.
  static var secureURL: Self {
    address("https://, or http:// to loopback, with no user, query or fragment") { $0.isPrivate }
  }

  private static func address(_ allowed: String, isSound: @escaping @Sendable (HTTPAddress) -> Bool) -> Self {
    let address = { @Sendable (text: String) in HTTPAddress(text).flatMap { isSound($0) ? $0.text : nil } }
    return .text(allowed, isShown: { $0.holdsNoPassword }, meaning: address, show: { .string($0) })
  }

  /// Where to listen; a port alone means loopback.
  static var listenAddress: Self {
    .text(
      "ADDRESS:PORT, [ADDRESS]:PORT for IPv6, or a PORT on loopback", meaning: { ListenAddress($0)?.text },
      show: { .string($0) })
  }

  /// Where to listen for programs of this machine; a port alone is enough.
  static var loopbackAddress: Self {
    let address = { @Sendable (text: String) in ListenAddress(text).flatMap { $0.isLoopback ? $0.text : nil } }
    return .text("ADDRESS:PORT on loopback, or a PORT alone", meaning: address, show: { .string($0) })
  }

  static var namespaceName: Self {
    string("a namespace's name: 1 to 64 of A-Z a-z 0-9 _ -, the first a letter or digit") { NamespaceName($0) != nil }
  }

  static var groupName: Self {
    string("a group of this system, by name or number") { SystemAccounts.groupID($0) != nil }
  }
}

extension ValueForm where Value == UInt32 {
  static var userAccount: Self {
    account("a user of this system, by name or number") { SystemAccounts.userID($0) }
  }

  static var groupAccount: Self {
    account("a group of this system, by name or number") { SystemAccounts.groupID($0) }
  }

  private static func account(_ allowed: String, _ find: @escaping @Sendable (String) -> UInt32?) -> Self {
    .text(allowed, types: ["string", "integer"], meaning: find, show: { .int($0) })
  }
}

extension ValueForm where Value == [UInt8] {
  /// An Ed25519 public key: base64 of 32 bytes, or 64 hexadecimal digits.
  static var publicKey: Self {
    keyBytes("an Ed25519 public key: 32 bytes as base64, or 64 hexadecimal digits") { text in
      text.utf8.count == 64 ? Hex.decode(text) : Base64.decode(Array(text.utf8))
    }
  }

  /// An X25519 public key: base64 of 32 bytes.
  static var sealingKey: Self {
    keyBytes("an X25519 public key: 32 bytes as base64, as prismctl keys new --seal prints it") { text in
      Base64.decode(Array(text.utf8)).flatMap { X25519.isOfSmallOrder($0) ? nil : $0 }
    }
  }

  /// 32 bytes, which faults don't show.
  private static func keyBytes(_ allowed: String, _ decode: @escaping @Sendable (String) -> [UInt8]?) -> Self {
    let key = { @Sendable (text: String) in decode(text).flatMap { $0.count == 32 ? $0 : nil } }
    return .text(allowed, types: "string", isShown: { _ in false }, meaning: key, show: { .string(Base64.encode($0)) })
  }
}

extension String {
  func isPrintable(bytesMax: Int) -> Bool {
    (1...bytesMax).contains(utf8.count) && printable == self
  }

  func isVisibleASCII(bytesMax: Int) -> Bool { (1...bytesMax).contains(utf8.count) && isVisibleASCII }

  /// Of an address: a user, or a query with a token, has no place in it.
  fileprivate var holdsNoPassword: Bool { !contains { $0 == "@" || $0 == "?" || $0 == "#" } }

  /// 32 or 64 hexadecimal digits: a key where a name or a path belongs.
  var isKeyMaterial: Bool { (utf8.count == 32 || utf8.count == 64) && Hex.decode(self) != nil }
}

/// Public keys of X25519 (RFC 7748) as values.
enum X25519 {
  /// The points of small order: with them every sender has the same secret, which everybody knows
  /// (https://cr.yp.to/ecdh.html#validate).
  static let smallOrder: [[UInt8]] = [
    [UInt8](repeating: 0, count: 32), [1] + [UInt8](repeating: 0, count: 31),
    Hex.decode("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800")!,
    Hex.decode("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157")!,
    [0xec] + [UInt8](repeating: 0xff, count: 30) + [0x7f], [0xed] + [UInt8](repeating: 0xff, count: 30) + [0x7f],
    [0xee] + [UInt8](repeating: 0xff, count: 30) + [0x7f],
  ]

  /// The last bit of a key does not count.
  static func isOfSmallOrder(_ key: [UInt8]) -> Bool {
    guard let last = key.last else { return true }
    return smallOrder.contains(key.dropLast() + [last & 0x7f])
  }
}
