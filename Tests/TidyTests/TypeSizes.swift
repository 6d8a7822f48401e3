/// The size of each type in Swift code, over all its declarations and extensions.
struct TypeSizes {
  struct Size: Equatable {
    /// Properties of an instance that take memory.
    var storedProperties = 0
    /// From brace to brace, nested types included.
    var lines = 0
  }

  /// By name; a nested type has its outer ones in front: `Outer.Inner`.
  private(set) var sizes: [String: Size] = [:]

  private let bytes: [UInt8]
  private var position = 0
  /// The type that each open brace belongs to; nil for a brace of anything else.
  private var open: [(type: String?, line: Int)] = []
  private var line = 1
  /// The type whose brace comes next.
  private var declared: String?
  private var words: [String] = []

  /// - Parameter code: without text and comments.
  init(of code: String) {
    bytes = Array(code.utf8)
    while position < bytes.count { step() }
  }

  private static let keywords: Set<String> = ["struct", "class", "actor", "enum", "extension", "protocol"]
  private static let notStored: Set<String> = ["static", "class", "case"]

  private mutating func step() {
    switch bytes[position] {
    case UInt8(ascii: "{"):
      open.append((declared, line))
      (declared, words) = (nil, [])
    case UInt8(ascii: "}"):
      if case (let type?, let start)? = open.popLast() { sizes[type, default: Size()].lines += line - start + 1 }
      words = []
    case UInt8(ascii: "\n"):
      line += 1
      words = []
    case let byte where Self.isLetter(byte):
      return takeWord()
    default: break
    }
    position += 1
  }

  private mutating func takeWord() {
    let word = identifier(at: position)
    position += word.utf8.count
    defer { words.append(word) }
    if Self.keywords.contains(word), words.last != "import" {
      var next = position
      while next < bytes.count, bytes[next] == UInt8(ascii: " ") { next += 1 }
      let name = identifier(at: next, withDots: true)
      guard name.first?.isUppercase == true else { return }
      declared = word == "extension" ? name : (open.last?.type).map { "\($0).\(name)" } ?? name
      position = next + name.utf8.count
    } else if word == "let" || word == "var", let type = open.last?.type, Self.notStored.isDisjoint(with: words) {
      sizes[type, default: Size()].storedProperties += propertyCount(from: position)
    }
  }

  /// The stored properties of one declaration: `let a: Int, b = 1`, `let (a, b) = c`; 0 for a computed one.
  private func propertyCount(from start: Int) -> Int {
    var (depth, commas, tupleCommas, hasValue) = (0, 0, 0, false)
    let isTuple = bytes[start...].first { $0 > UInt8(ascii: " ") } == UInt8(ascii: "(")
    var last = UInt8(ascii: " ")
    for index in start..<bytes.count {
      let byte = bytes[index]
      switch byte {
      case UInt8(ascii: "<"), UInt8(ascii: ">"):
        // Brackets are right behind a type; an operator, a range and an arrow do not.
        if Self.endsType(bytes[index - 1]) { depth += byte == UInt8(ascii: "<") ? 1 : -1 }
      case UInt8(ascii: "("), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: ")"), UInt8(ascii: "]"): depth -= 1
      case UInt8(ascii: ",") where depth == 0: commas += 1
      case UInt8(ascii: ",") where depth == 1 && isTuple && !hasValue: tupleCommas += 1
      case UInt8(ascii: "=") where depth == 0: hasValue = true
      case UInt8(ascii: "{") where depth == 0:
        return hasValue || isObserved(at: index) ? commas + tupleCommas + 1 : 0
      case UInt8(ascii: "}") where depth == 0: return commas + tupleCommas + 1
      case UInt8(ascii: "\n") where depth == 0 && !continues(after: index, last: last):
        return commas + tupleCommas + 1
      default: break
      }
      if byte > UInt8(ascii: " ") { last = byte }
    }
    return commas + tupleCommas + 1
  }

  private func isObserved(at brace: Int) -> Bool {
    let body = String(decoding: bytes[brace...].prefix(80), as: UTF8.self)
    return body.contains(/^\{\s*(didSet|willSet)\b/)
  }

  /// Whether a declaration goes on in the line after `index`.
  private func continues(after index: Int, last: UInt8) -> Bool {
    let next = bytes[index...].first { $0 > UInt8(ascii: " ") }
    return [UInt8(ascii: ","), UInt8(ascii: "="), UInt8(ascii: ":")].contains(last) || next == UInt8(ascii: "{")
  }

  private func identifier(at start: Int, withDots: Bool = false) -> String {
    let word = bytes[start...].prefix { byte in
      Self.isLetter(byte) || (byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9"))
        || (withDots && byte == UInt8(ascii: "."))
    }
    return String(decoding: word, as: UTF8.self)
  }

  private static func endsType(_ byte: UInt8) -> Bool {
    isLetter(byte) || (byte >= UInt8(ascii: "0") && byte <= UInt8(ascii: "9"))
      || [UInt8(ascii: ">"), UInt8(ascii: "]"), UInt8(ascii: ")"), UInt8(ascii: "?")].contains(byte)
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    (byte | 0x20 >= UInt8(ascii: "a") && byte | 0x20 <= UInt8(ascii: "z")) || byte == UInt8(ascii: "_") || byte >= 0x80
  }
}
