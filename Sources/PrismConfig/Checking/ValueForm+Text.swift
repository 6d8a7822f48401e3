import PrismBase
import PrismProtocol

extension ValueForm where Value == UnitPattern {
  static var unitPattern: Self {
    let form = ValueForm<String>.string("a unit's name with * and ?, for example shop-*.service") {
      UnitPattern($0) != nil
    }
    return ValueForm(allowed: form.allowed, schema: form.schema) { node, key, checker in
      form.read(node, key, &checker).flatMap { UnitPattern($0) }
    } show: {
      .string($0.text)
    }
  }
}

extension ValueForm where Value == String {
  /// - Parameters:
  ///   - allowed: what `isSound` asks for, in words.
  ///   - isShown: false keeps a value out of faults: it may be a secret that went astray.
  static func string(
    _ allowed: String, isShown: @escaping @Sendable (String) -> Bool = { _ in true },
    isSound: @escaping @Sendable (String) -> Bool
  ) -> Self {
    let schema: JSONValue = ["type": ["string", "number"]]
    return ValueForm(allowed: allowed, schema: schema) { node, key, checker in
      guard let text = checker.text(node, key, mustBe: allowed) else { return nil }
      if isSound(text) { return text }
      if isShown(text) {
        checker.refuse(node, key, mustBe: allowed)
      } else {
        checker.fault(node.line, key, "must be \(allowed)")
      }
      return nil
    } show: {
      .string($0)
    }
  }

  /// Not empty, and nothing in it that would break a line or a header.
  static func text(bytesMax: Int) -> Self {
    string("text of 1 to \(bytesMax) bytes without control characters") { $0.isPrintable(bytesMax: bytesMax) }
  }

  /// Characters that a header and a query can carry.
  static var visibleASCII: Self {
    string("1 to 128 visible ASCII characters") { (1...128).contains($0.utf8.count) && $0.isVisibleASCII }
  }

  /// Digits of a key in the wrong place are not an id, and are not shown.
  static var keyID: Self {
    let isSound = { @Sendable (text: String) in
      (1...64).contains(text.utf8.count) && !text.isKeyMaterial
        && text.utf8.allSatisfy {
          $0.isASCIIAlphanumeric || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "-")
        }
    }
    return string("1 to 64 of A-Z a-z 0-9 _ . -", isShown: { _ in false }, isSound: isSound)
  }

  /// A collector's address without its trailing slash. An address with a password is not shown, because faults end in
  /// logs.
  static var collectorURL: Self {
    address("http:// or https://, a host, and a path at most (no user, query or fragment)") { _ in true }
  }

  /// Plain http goes to loopback only.
  static var secureURL: Self {
    address("https://, or http:// to loopback, with no user, query or fragment") { $0.isSecure || $0.isLoopback }
  }

  private static func address(_ allowed: String, isSound: @escaping @Sendable (HTTPAddress) -> Bool) -> Self {
    let form = string(
      allowed, isShown: { $0.holdsNoPassword }, isSound: { HTTPAddress($0).map(isSound) ?? false })
    return form.converted({ HTTPAddress($0)?.text ?? $0 }, back: { $0 })
  }

  /// Where to listen; a port alone means loopback.
  static var listenAddress: Self {
    string("ADDRESS:PORT, [ADDRESS]:PORT for IPv6, or a PORT on loopback") { ListenAddress($0) != nil }
      .converted({ ListenAddress($0)?.text ?? $0 }, back: { $0 })
  }

  /// Where to listen for programs of this machine; a port alone is enough.
  static var loopbackAddress: Self {
    string("ADDRESS:PORT on loopback, or a PORT alone") { ListenAddress($0)?.isLoopback == true }
      .converted({ ListenAddress($0)?.text ?? $0 }, back: { $0 })
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
    ValueForm(allowed: allowed, schema: ["type": ["string", "integer"]]) { node, key, checker in
      guard let name = checker.text(node, key, mustBe: allowed) else { return nil }
      if let id = find(name) { return id }
      checker.refuse(node, key, mustBe: allowed)
      return nil
    } show: {
      .int($0)
    }
  }
}

extension ValueForm where Value == [UInt8] {
  /// An Ed25519 public key: base64 of 32 bytes, or 64 hexadecimal digits.
  static var publicKey: Self {
    let allowed = "an Ed25519 public key: 32 bytes as base64, or 64 hexadecimal digits"
    return ValueForm(allowed: allowed, schema: ["type": "string"]) { node, key, checker in
      guard let text = checker.text(node, key, mustBe: allowed) else { return nil }
      let bytes = text.utf8.count == 64 ? Hex.decode(text) : Base64.decode(Array(text.utf8))
      if let bytes, bytes.count == 32 { return bytes }
      checker.fault(node.line, key, "must be \(allowed)")
      return nil
    } show: {
      .string(Base64.encode($0))
    }
  }
}

extension ValueForm where Value == [UInt8] {
  /// An X25519 public key: base64 of 32 bytes.
  static var sealingKey: Self {
    let allowed = "an X25519 public key: 32 bytes as base64, as prismctl keys new --seal prints it"
    return ValueForm(allowed: allowed, schema: ["type": "string"]) { node, key, checker in
      guard let text = checker.text(node, key, mustBe: allowed) else { return nil }
      if let bytes = Base64.decode(Array(text.utf8)), bytes.count == 32, !X25519.isOfSmallOrder(bytes) { return bytes }
      checker.fault(node.line, key, "must be \(allowed)")
      return nil
    } show: {
      .string(Base64.encode($0))
    }
  }
}

extension String {
  func isPrintable(bytesMax: Int) -> Bool {
    (1...bytesMax).contains(utf8.count) && printable == self
  }

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
