import PrismBase

/// The path of a function in a mangled name, as reporters without a demangler write it: C++ and Rust (Itanium's `_Z`), and by
/// other types Rust's `_R` and Swift's `$s`.
struct MangledName {
  private let bytes: [UInt8]
  private var at: Int
  private var parts: [String] = []

  /// - Returns: nil: the name is not mangled, or in a form that is not read.
  static func path(_ name: Substring) -> String? {
    if name.hasPrefix("_R") { return RustName.path(name) }
    if let swift = SwiftName.path(name) { return swift }
    // elfutils takes `_Z` apart, and leaves the escapes of Rust.
    guard name.hasPrefix("_Z") else { return name.firstPlace(of: "$GT$") == nil ? nil : decoded(String(name)) }
    var reader = MangledName(bytes: Array(name.utf8), at: 2)
    return reader.read() ? reader.parts.joined(separator: "::") : nil
  }

  private var byte: UInt8 { at < bytes.count ? bytes[at] : 0 }
  private var isDigit: Bool { byte.isASCIIDigit }

  /// The names up to the parameters. Substitutions and operators stay as they are written.
  private mutating func read() -> Bool {
    let isNested = byte == UInt8(ascii: "N")
    if isNested { at += 1 }
    while "KVrL".utf8.contains(byte) { at += 1 }
    repeat {
      switch byte {
      case UInt8(ascii: "I"): guard skipArguments() else { return false }
      case UInt8(ascii: "S"): takeSubstitution()
      case UInt8(ascii: "L"): at += 1
      case _ where isDigit: guard takeName() else { return false }
      case _ where at + 2 <= bytes.count:
        parts.append(String(decoding: bytes[at..<at + 2], as: UTF8.self))
        at += 2
      default: return false
      }
    } while isNested ? byte != UInt8(ascii: "E") : parts == ["std"]
    return !parts.isEmpty
  }

  private mutating func length() -> Int? {
    var length = 0
    while isDigit {
      length = length * 10 + Int(byte - UInt8(ascii: "0"))
      at += 1
      guard length <= bytes.count else { return nil }
    }
    return at + length <= bytes.count ? length : nil
  }

  private mutating func takeName() -> Bool {
    guard let length = length(), length > 0 else { return false }
    let name = String(decoding: bytes[at..<at + length], as: UTF8.self)
    at += length
    parts.append(name.hasPrefix("_GLOBAL__N") ? "(anonymous namespace)" : Self.decoded(name))
    return true
  }

  private mutating func takeSubstitution() {
    at += 1
    if byte == UInt8(ascii: "t") {
      parts.append("std")
      at += 1
    } else {
      let isShort = "abiosd".utf8.contains(byte)
      let end = isShort ? at + 1 : bytes[at...].firstIndex(of: UInt8(ascii: "_")).map { $0 + 1 } ?? at + 1
      parts.append("S" + String(decoding: bytes[at..<min(end, bytes.count)], as: UTF8.self))
      at = min(end, bytes.count)
    }
  }

  /// Skips `I…E` with what is nested in it.
  private mutating func skipArguments() -> Bool {
    var depth = 0
    repeat {
      if isDigit {
        guard let length = length() else { return false }
        at += length
        continue
      }
      if byte == UInt8(ascii: "S") || byte == UInt8(ascii: "T") {
        let isShort = byte == UInt8(ascii: "S") && at + 1 < bytes.count && "tabsiod".utf8.contains(bytes[at + 1])
        at = isShort ? at + 2 : bytes[at...].firstIndex(of: UInt8(ascii: "_")).map { $0 + 1 } ?? bytes.count
        continue
      }
      if byte == UInt8(ascii: "L") {
        at = bytes[at...].firstIndex(of: UInt8(ascii: "E")).map { $0 + 1 } ?? bytes.count
        continue
      }
      if "INXFJ".utf8.contains(byte) { depth += 1 }
      if byte == UInt8(ascii: "E") { depth -= 1 }
      at += 1
    } while depth > 0 && at < bytes.count
    return depth == 0
  }

  // MARK: Rust

  private static let escapes = [
    ("$LT$", "<"), ("$GT$", ">"), ("$u20$", " "), ("$RF$", "&"), ("$BP$", "*"), ("$C$", ","), ("$LP$", "("),
    ("$RP$", ")"),
    ("$u7b$", "{"), ("$u7d$", "}"), ("$u5b$", "["), ("$u5d$", "]"), ("..", "::"),
  ]

  private static func decoded(_ name: String) -> String {
    guard name.utf8.contains(UInt8(ascii: "$")) || name[...].firstPlace(of: "..") != nil else { return name }
    let name = name.hasPrefix("_$") ? String(name.dropFirst()) : name
    return escapes.reduce(name) { $0.split(separator: $1.0, omittingEmptySubsequences: false).joined(separator: $1.1) }
  }
}

/// The path of a function at the begin of a name of Swift's (`$s`): the module, types, and the function. Its type and
/// how it was specialized are left out. Names of the standard library stay as they are.
struct SwiftName {
  private static let wordsMax = 26

  private let bytes: [UInt8]
  private var at: Int
  private var words: [[UInt8]] = []

  /// - Returns: nil: it is not such a name, or begins in another form.
  static func path(_ name: Substring) -> String? {
    guard let start = ["$s", "_$s", "$S", "_$S"].first(where: { name.hasPrefix($0) }) else { return nil }
    var reader = SwiftName(bytes: Array(name.utf8), at: start.utf8.count)
    var parts: [String] = []
    while let part = reader.identifier() {
      parts.append(part)
      // Class, structure, enumeration, protocol: one more name is within it.
      let isType = reader.at < reader.bytes.count && "VCOP".utf8.contains(reader.bytes[reader.at])
      if parts.count > 1 {
        guard isType else { break }
        reader.at += 1
      }
    }
    return parts.count > 1 ? parts.joined(separator: ".") : nil
  }

  private func isLetter(_ first: Unicode.Scalar, _ last: Unicode.Scalar) -> Bool {
    at < bytes.count && (UInt8(ascii: first)...UInt8(ascii: last)).contains(bytes[at])
  }

  /// `4shop`; with words of names before it in its place, `0A4Cart`: the last such word is in upper case.
  private mutating func identifier() -> String? {
    guard isLetter("0", "9") else { return nil }
    var name: [UInt8] = []
    if bytes[at] == UInt8(ascii: "0") {
      at += 1
      guard isLetter("a", "z") || isLetter("A", "Z") else { return nil }
      var isLast = false
      while !isLast {
        guard isLetter("a", "z") || isLetter("A", "Z") else { break }
        isLast = isLetter("A", "Z")
        let word = Int(bytes[at] | UInt8(ascii: " ")) - Int(UInt8(ascii: "a"))
        guard words.indices.contains(word) else { return nil }
        name += words[word]
        at += 1
      }
      if at < bytes.count, bytes[at] == UInt8(ascii: "0") {
        at += 1
        return String(decoding: name, as: UTF8.self)
      }
    }
    guard let literal = literal() else { return name.isEmpty ? nil : String(decoding: name, as: UTF8.self) }
    note(literal)
    return String(decoding: name + literal, as: UTF8.self)
  }

  private mutating func literal() -> [UInt8]? {
    var length = 0
    let start = at
    while isLetter("0", "9"), length <= bytes.count {
      length = length * 10 + Int(bytes[at] - UInt8(ascii: "0"))
      at += 1
    }
    guard at > start, length > 0, length <= bytes.count - at else { return nil }
    defer { at += length }
    return Array(bytes[at..<at + length])
  }

  /// Words begin with an upper-case letter, or the first letter, and have two letters or more.
  private mutating func note(_ name: [UInt8]) {
    let isUpper = { (byte: UInt8) in (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) }
    let isWordByte = { (byte: UInt8) in byte != UInt8(ascii: "_") && byte != 0 }
    var start: Int?
    for place in 0...name.count {
      if let first = start {
        let isEnd =
          place == name.count || !isWordByte(name[place]) || !isUpper(name[place - 1]) && isUpper(name[place])
        guard isEnd else { continue }
        if place - first >= 2, words.count < Self.wordsMax { words.append(Array(name[first..<place])) }
        start = nil
      }
      if place < name.count, isWordByte(name[place]), !name[place].isASCIIDigit {
        start = place
      }
    }
  }
}
