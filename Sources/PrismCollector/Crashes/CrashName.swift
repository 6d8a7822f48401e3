import PrismBase

/// The name of a function without parameters, generics, and what differs between builds: hashes, numbers of closures, the
/// suffixes of a compiler's clones.
struct CrashName {
  private let bytes: [UInt8]
  private var plain: [UInt8] = []
  private var at = 0

  /// - Returns: nil if the reporter knew no name.
  static func plain(_ name: Substring) -> String? {
    guard let known = SymbolName.known(name.trimmed) else { return nil }
    let whole = String(withoutModule(MangledName.path(known)?[...] ?? known))
    var reader = CrashName(bytes: Array(whole.utf8))
    reader.read()
    let name = tidy(
      String(decoding: reader.plain, as: UTF8.self)[...], isTemplate: whole[...].firstPlace(of: ">(") != nil)
    return SymbolName.known(name).flatMap { isAddress($0) ? nil : String($0) }
  }

  /// Java writes `loader//acme@1.1/com.acme.Cart.total`.
  private static func withoutModule(_ name: Substring) -> Substring {
    let head = name.prefix { $0 != "(" && $0 != "$" }
    guard let slash = head.lastIndex(of: "/") else { return name }
    return head[..<slash].contains("@") || head[..<slash].last == "/" ? name[name.index(after: slash)...] : name
  }

  private static func isAddress(_ name: Substring) -> Bool {
    name.hasPrefix("0x") && SymbolName.hex(name.dropFirst(2)) != nil
  }

  // MARK: Reading

  private static let suffixes = [
    ".cold", ".constprop.", ".isra.", ".part.", ".llvm.", ".lto_priv.", "@plt", "@@", "@GLIBC",
  ]
  .map { Array($0.utf8) }
  private static let address = Array("/0x".utf8), closure = Array("func".utf8)
  private static let anonymous = Array("(anonymous namespace)".utf8), receiver = Array("(*".utf8)

  private mutating func read() {
    while at < bytes.count {
      let byte = bytes[at]
      switch byte {
      case UInt8(ascii: "."), UInt8(ascii: "@"):
        if Self.suffixes.contains(where: { bytes[at...].starts(with: $0) }) && !plain.isEmpty { return }
        keep(1)
      case UInt8(ascii: "("): readParentheses()
      // Go numbers closures: `main.pay.func2`.
      case UInt8(ascii: "f") where isGo && plain.ends(with: ".") && bytes[at...].starts(with: Self.closure):
        keep(Self.closure.count)
        at -= 1
        skipDigits()
      case UInt8(ascii: "["): readBrackets()
      case UInt8(ascii: "<"): readAngles()
      case UInt8(ascii: "#"): skipDigits()
      case UInt8(ascii: "/") where bytes[at...].starts(with: Self.address): skipHex(from: at + Self.address.count)
      case UInt8(ascii: "$"):
        keep(1)
        // The hash of a class that a library of Java made.
        if plain.ends(with: "$$"), bytes[at...].prefix(while: CrashText.isHex).count >= 6 {
          skipHex(from: at)
          continue
        }
        if at < bytes.count, bytes[at] == UInt8(ascii: "_") { keep(1) }
        at -= 1
        skipDigits()
      case UInt8(ascii: "{"), UInt8(ascii: "}"), UInt8(ascii: " "):
        if plain.last == byte { at += 1 } else { keep(1) }
      default: keep(1)
      }
    }
  }

  private mutating func keep(_ count: Int) {
    plain += bytes[at..<min(at + count, bytes.count)]
    at += count
  }

  private mutating func skipHex(from start: Int) { at = start + bytes[start...].prefix(while: CrashText.isHex).count }

  private mutating func skipDigits() {
    at += 1
    while at < bytes.count, bytes[at].isASCIIDigit { at += 1 }
  }

  /// Whether it begins with a package of Go.
  private var isGo: Bool { plain.starts(with: "main.".utf8) || plain.contains(UInt8(ascii: "/")) }

  private var isOperator: Bool { plain.ends(with: "operator") }

  /// Parameters go; `(anonymous namespace)`, Go's `(*Cart)` and `operator()` stay.
  private mutating func readParentheses() {
    let end = end(of: UInt8(ascii: "("), UInt8(ascii: ")"))
    let group = bytes[at..<end]
    if group.elementsEqual(Self.anonymous) {
      // Without its space, since a space parts a name from the type before it.
      plain += "(anonymous)".utf8
      at = end
    } else if group.starts(with: Self.receiver) || isOperator && group.count == 2 {
      keep(group.count)
    } else {
      at = end
    }
  }

  /// `[abi:cxx11]`, `[clone .cold]`, Go's `[...]` and Node's `[as total]` go.
  private mutating func readBrackets() {
    let end = end(of: UInt8(ascii: "["), UInt8(ascii: "]"))
    if isOperator || plain.isEmpty { keep(end - at) } else { at = end }
  }

  /// Generics go; `<A as B>::f` is `A::f`, and names such as `<module>` and `.<init>` stay.
  private mutating func readAngles() {
    if isOperator {
      while at < bytes.count, "<=>".utf8.contains(bytes[at]) { keep(1) }
      return
    }
    let end = end(of: UInt8(ascii: "<"), UInt8(ascii: ">"))
    if plain.ends(with: "::") {
      plain.removeLast(2)
    } else if plain.isEmpty, bytes[end...].starts(with: "::".utf8) {
      let inner = String(decoding: bytes[(at + 1)..<max(at + 1, end - 1)], as: UTF8.self)[...]
      var reader = CrashName(bytes: Array(inner[..<(inner.firstPlace(of: " as ")?.lowerBound ?? inner.endIndex)].utf8))
      if bytes[at + 1] != UInt8(ascii: "<") { reader.read() } else { reader.plain = reader.bytes }
      plain += reader.plain
    } else if plain.isEmpty || plain.last == UInt8(ascii: ".") || plain.last == UInt8(ascii: " ") {
      return keep(end - at)
    }
    at = end
  }

  /// The place behind the bracket that closes the one at `at`; the end if it is missing.
  private func end(of open: UInt8, _ close: UInt8) -> Int {
    var (depth, place) = (0, at)
    while place < bytes.count {
      if bytes[place] == open { depth += 1 }
      if bytes[place] == close, !(close == UInt8(ascii: ">") && "-=".utf8.contains(bytes[place - 1])) { depth -= 1 }
      place += 1
      if depth == 0 { return place }
    }
    return bytes.count
  }

  // MARK: The rest

  private static let prefixes = [
    "non-virtual thunk to ", "virtual thunk to ", "async ", "specialized ", "generic specialization of ", "merged ",
    "static ", "new ", "dyn ", "&", "*",
  ]
  private static let ends = [" const", " volatile", " noexcept", " async", " throws", " &&", " &"]

  /// - Parameter isTemplate: the name of a function template begins with the type of its result.
  private static func tidy(_ name: Substring, isTemplate: Bool) -> Substring {
    var name = name.trimmed
    if let arrow = name.firstPlace(of: " -> ") { name = name[..<arrow.lowerBound].trimmed }
    while let prefix = prefixes.first(where: { name.hasPrefix($0) }) { name = name.dropFirst(prefix.count) }
    while let end = ends.first(where: { name.hasSuffix($0) }) { name = name.dropLast(end.count).trimmed }
    if name.count > 19, let hash = name.lastRange(of: "::h"), name[hash.upperBound...].count == 16,
      SymbolName.hex(name[hash.upperBound...]) != nil
    {
      name = name[..<hash.lowerBound]
    }
    let isSentence = [" in ", "operator", " for "].contains { name.firstPlace(of: $0) != nil }
    if isTemplate, !isSentence, let space = name.lastIndex(of: " ") { name = name[name.index(after: space)...] }
    return name
  }
}

extension [UInt8] {
  fileprivate func ends(with text: String) -> Bool { suffix(text.utf8.count).elementsEqual(text.utf8) }
}
