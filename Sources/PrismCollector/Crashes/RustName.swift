import PrismBase

/// The path of a function in a name of Rust's `_R` (RFC 2603), without hashes, generics and the traits of implementations.
struct RustName {
  /// A name may be deep, and refer to its own parts: what it takes is bounded.
  private static let depthMax = 32, stepsMax = 2000

  private let bytes: [UInt8]
  private var at: Int
  private var steps = 0

  /// - Returns: nil: it is not such a name.
  static func path(_ name: Substring) -> String? {
    var reader = RustName(bytes: Array(name.utf8.prefix { $0 != UInt8(ascii: ".") }), at: 2)
    guard name.hasPrefix("_R"), let parts = reader.path(depth: 0), parts.first?.isEmpty == false else { return nil }
    return parts.joined(separator: "::")
  }

  private mutating func take() -> UInt8? {
    steps += 1
    guard at < bytes.count, steps < Self.stepsMax else { return nil }
    defer { at += 1 }
    return bytes[at]
  }

  private mutating func takes(_ letter: Unicode.Scalar) -> Bool {
    guard at < bytes.count, bytes[at] == UInt8(ascii: letter) else { return false }
    at += 1
    return true
  }

  // MARK: Paths

  private mutating func path(depth: Int) -> [String]? {
    guard depth < Self.depthMax, let kind = take() else { return nil }
    switch kind {
    case UInt8(ascii: "C"): return identifier().map { [$0] }
    case UInt8(ascii: "N"): return nested(depth)
    case UInt8(ascii: "M"):
      guard skipDisambiguator(), path(depth: depth + 1) != nil else { return nil }
      return type(depth: depth + 1)
    case UInt8(ascii: "X"):
      guard skipDisambiguator(), path(depth: depth + 1) != nil, let own = type(depth: depth + 1) else { return nil }
      return path(depth: depth + 1) == nil ? nil : own
    case UInt8(ascii: "Y"):
      guard let own = type(depth: depth + 1) else { return nil }
      return path(depth: depth + 1) == nil ? nil : own
    case UInt8(ascii: "I"):
      guard let own = path(depth: depth + 1) else { return nil }
      while !takes("E") { guard skipArgument(depth + 1) else { return nil } }
      return own
    case UInt8(ascii: "B"): return again(depth) { $0.path(depth: $1) }
    default: return nil
    }
  }

  private mutating func nested(_ depth: Int) -> [String]? {
    guard let namespace = take(), let outer = path(depth: depth + 1), let name = identifier() else { return nil }
    switch namespace {
    case UInt8(ascii: "C"): return outer + ["{closure}"]
    case UInt8(ascii: "S"): return outer + ["{shim}"]
    default: return name.isEmpty ? outer : outer + [name]
    }
  }

  /// Reads an earlier part of the name.
  private mutating func again(_ depth: Int, _ read: (inout RustName, Int) -> [String]?) -> [String]? {
    guard let place = base62(), (0..<at - 2).contains(place) else { return nil }
    let end = at
    at = place + 2
    let parts = read(&self, depth + 1)
    at = end
    return parts
  }

  // MARK: Types

  private mutating func type(depth: Int) -> [String]? {
    guard depth < Self.depthMax, let kind = take() else { return nil }
    switch kind {
    case UInt8(ascii: "a")...UInt8(ascii: "z"): return [Self.basic[kind] ?? "_"]
    case UInt8(ascii: "A"): return skipped(type(depth: depth + 1), skipConstant(depth + 1), as: "[]")
    case UInt8(ascii: "S"): return skipped(type(depth: depth + 1), true, as: "[]")
    case UInt8(ascii: "R"), UInt8(ascii: "Q"):
      if takes("L"), base62() == nil { return nil }
      return type(depth: depth + 1)
    case UInt8(ascii: "P"), UInt8(ascii: "O"): return type(depth: depth + 1)
    case UInt8(ascii: "T"):
      while !takes("E") { guard type(depth: depth + 1) != nil else { return nil } }
      return ["()"]
    case UInt8(ascii: "B"): return again(depth) { $0.type(depth: $1) }
    case UInt8(ascii: "F"), UInt8(ascii: "D"): return nil
    default:
      at -= 1
      return path(depth: depth + 1)
    }
  }

  private static let basic: [UInt8: String] = [
    UInt8(ascii: "b"): "bool", UInt8(ascii: "c"): "char", UInt8(ascii: "e"): "str", UInt8(ascii: "u"): "()",
    UInt8(ascii: "a"): "i8", UInt8(ascii: "s"): "i16", UInt8(ascii: "l"): "i32", UInt8(ascii: "x"): "i64",
    UInt8(ascii: "n"): "i128", UInt8(ascii: "i"): "isize", UInt8(ascii: "h"): "u8", UInt8(ascii: "t"): "u16",
    UInt8(ascii: "m"): "u32", UInt8(ascii: "y"): "u64", UInt8(ascii: "o"): "u128", UInt8(ascii: "j"): "usize",
    UInt8(ascii: "f"): "f32", UInt8(ascii: "d"): "f64", UInt8(ascii: "z"): "!",
  ]

  private func skipped(_ type: [String]?, _ isWhole: Bool, as shown: String) -> [String]? {
    type == nil || !isWhole ? nil : [shown]
  }

  private mutating func skipArgument(_ depth: Int) -> Bool {
    if takes("L") { return base62() != nil }
    return takes("K") ? skipConstant(depth) : type(depth: depth) != nil
  }

  /// `j2a_`: a type, hexadecimal digits, `_`; `p`: a placeholder.
  private mutating func skipConstant(_ depth: Int) -> Bool {
    if takes("p") { return true }
    if takes("B") { return base62() != nil }
    guard type(depth: depth) != nil else { return false }
    while let byte = take() { if byte == UInt8(ascii: "_") { return true } }
    return false
  }

  // MARK: Words

  private mutating func skipDisambiguator() -> Bool { !takes("s") || base62() != nil }

  /// Without its disambiguator, which is the hash of a crate.
  private mutating func identifier() -> String? {
    guard skipDisambiguator() else { return nil }
    _ = takes("u")
    var length = 0
    while at < bytes.count, bytes[at].isASCIIDigit, length <= bytes.count {
      length = length * 10 + Int(bytes[at] - UInt8(ascii: "0"))
      at += 1
    }
    _ = takes("_")
    guard length <= bytes.count - at else { return nil }
    defer { at += length }
    return String(decoding: bytes[at..<at + length], as: UTF8.self)
  }

  /// `_` is 0, `0_` is 1. That of a crate's hash may be any number.
  private mutating func base62() -> Int? {
    if takes("_") { return 0 }
    var number = 0
    while let byte = take() {
      switch byte {
      case UInt8(ascii: "_"): return number &+ 1
      case UInt8(ascii: "0")...UInt8(ascii: "9"): number = number &* 62 &+ Int(byte - UInt8(ascii: "0"))
      case UInt8(ascii: "a")...UInt8(ascii: "z"): number = number &* 62 &+ 10 &+ Int(byte - UInt8(ascii: "a"))
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): number = number &* 62 &+ 36 &+ Int(byte - UInt8(ascii: "A"))
      default: return nil
      }
    }
    return nil
  }
}
