/// Just enough of Swift's grammar to tell code from text, and to find where functions begin and end.
enum SwiftCode {
  /// `text` with comments and the content of string literals taken out; line feeds stay, so that line numbers do.
  static func withoutTextAndComments(_ text: String) -> String {
    var scanner = Scanner(Array(text.utf8))
    scanner.code(until: nil)
    return String(decoding: scanner.output, as: UTF8.self)
  }

  struct Function: Equatable {
    let line: Int
    let lineCount: Int
  }

  /// Every `func`, `init`, `deinit` and `subscript` that has a body: where it begins, and its lines up to the closing brace.
  /// - Parameter code: without text and comments.
  static func functions(in code: String) -> [Function] {
    bodies(in: code, after: /(?m)^[ \t]*(?:@?[a-z]\w*(?:\([a-z]+\))?[ \t]+)*(?:func|init|deinit|subscript)\b/)
  }

  /// Every `var` and `let` with braces: computed properties, observers, and closures that are the value.
  static func properties(in code: String) -> [Function] {
    bodies(in: code, after: /(?m)^[ \t]*(?:@?[a-z]\w*(?:\([a-z]+\))?[ \t]+)*(?:var|let)\b/)
  }

  private static func bodies(in code: String, after keyword: Regex<Substring>) -> [Function] {
    let bytes = Array(code.utf8)
    var found: [Function] = []
    for match in code.matches(of: keyword) {
      let end = code.utf8.distance(from: code.startIndex, to: match.range.upperBound)
      guard let open = bodyStart(bytes, from: end), let close = closingBrace(bytes, from: open) else { continue }
      let line = 1 + bytes[..<end].count { $0 == UInt8(ascii: "\n") }
      found.append(Function(line: line, lineCount: 1 + bytes[end...close].count { $0 == UInt8(ascii: "\n") }))
    }
    return found
  }

  /// The `{` of a declaration's body; nil for a requirement of a protocol, which has none.
  private static func bodyStart(_ bytes: [UInt8], from start: Int) -> Int? {
    var depth = 0
    for index in start..<bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "("), UInt8(ascii: "["): depth += 1
      case UInt8(ascii: ")"), UInt8(ascii: "]"): depth -= 1
      case UInt8(ascii: "{") where depth == 0: return index
      case UInt8(ascii: "}") where depth == 0: return nil
      case UInt8(ascii: "\n") where depth == 0 && !continues(bytes[(index + 1)...]): return nil
      default: break
      }
    }
    return nil
  }

  /// Whether a declaration goes on in this line.
  private static func continues(_ rest: ArraySlice<UInt8>) -> Bool {
    let line = String(decoding: rest.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self).drop { $0 == " " }
    return ["{", "->", "throws", "async", "where", ")"].contains { line.hasPrefix($0) }
  }

  private static func closingBrace(_ bytes: [UInt8], from open: Int) -> Int? {
    var depth = 0
    for index in open..<bytes.count {
      if bytes[index] == UInt8(ascii: "{") { depth += 1 }
      if bytes[index] == UInt8(ascii: "}") { depth -= 1 }
      if depth == 0 { return index }
    }
    return nil
  }
}

extension SwiftCode {
  private struct Scanner {
    private let input: [UInt8]
    private var position = 0
    private(set) var output: [UInt8] = []

    init(_ input: [UInt8]) { self.input = input }

    private func at(_ text: StaticString) -> Bool {
      position + text.utf8CodeUnitCount <= input.count
        && (0..<text.utf8CodeUnitCount).allSatisfy { input[position + $0] == text.utf8Start[$0] }
    }

    /// - Parameter end: the bracket that closes an interpolation; nil: to the end of the file.
    mutating func code(until end: UInt8?) {
      var depth = 0
      while position < input.count {
        if at("//") {
          skip { $0.input[$0.position] == UInt8(ascii: "\n") }
        } else if at("/*") {
          skip { $0.at("*/") }
        } else if let hashes = stringStart() {
          string(hashes: hashes)
        } else {
          let byte = input[position]
          if byte == UInt8(ascii: "(") { depth += 1 }
          if byte == UInt8(ascii: ")") { depth -= 1 }
          position += 1
          if byte == end && depth < 0 { return }
          output.append(byte)
        }
      }
    }

    private mutating func skip(until isOver: (Scanner) -> Bool) {
      while position < input.count, !isOver(self) { skipByte() }
    }

    private mutating func skipByte() {
      if input[position] == UInt8(ascii: "\n") { output.append(input[position]) }
      position += 1
    }

    /// The number of `#` before a quote that begins a literal here.
    private func stringStart() -> Int? {
      var hashes = 0
      while position + hashes < input.count, input[position + hashes] == UInt8(ascii: "#") { hashes += 1 }
      return position + hashes < input.count && input[position + hashes] == UInt8(ascii: "\"") ? hashes : nil
    }

    private mutating func string(hashes: Int) {
      position += hashes
      let quotes = at("\"\"\"") ? 3 : 1
      position += quotes
      output.append(UInt8(ascii: "\""))
      let end = [UInt8](repeating: UInt8(ascii: "\""), count: quotes) + marks(hashes)
      let escape = [UInt8(ascii: "\\")] + marks(hashes)
      while position < input.count, !input[position...].starts(with: end) {
        guard input[position...].starts(with: escape) else {
          skipByte()
          continue
        }
        position += escape.count
        let isInterpolation = at("(")
        skipByte()
        if isInterpolation { code(until: UInt8(ascii: ")")) }
      }
      position = min(position + end.count, input.count)
      output.append(UInt8(ascii: "\""))
    }

    private func marks(_ count: Int) -> [UInt8] { [UInt8](repeating: UInt8(ascii: "#"), count: count) }
  }
}
