/// Where text that people read stands in each kind of file.
extension Prose {
  /// A page in Markdown: paragraphs, items, cells and headings; no code blocks.
  static func page(_ text: String) -> [Passage] {
    var builder = PassageBuilder()
    var isCode = false
    for (index, full) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      let line = full.drop { $0 == " " || $0 == ">" }
      if line.hasPrefix("```") { isCode.toggle() }
      if isCode || line.isEmpty || line.hasPrefix("```") || line.hasPrefix("<!--") {
        builder.end()
      } else if line.hasPrefix("#") {
        builder.fragment(String(line.drop { $0 == "#" }), at: index)
      } else if line.hasPrefix("|") {
        for cell in line.split(separator: "|") { builder.fragment(withoutLinks(String(cell)), at: index) }
      } else {
        if startsItem(line) { builder.end() }
        builder.add(withoutLinks(String(line)), at: index)
      }
    }
    return builder.finish()
  }

  /// A manual page (mdoc): text without requests. Requests that only choose a font are code; others end a passage.
  static func manual(_ text: String) -> [Passage] {
    var builder = PassageBuilder()
    var isCode = false
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      let request = line.prefix { $0 != " " }
      if request == ".Bd" { isCode = true }
      if request == ".Ed" { isCode = false }
      if isCode || line.isEmpty {
        builder.end()
      } else if fontRequests.contains(request) {
        builder.add(code(of: line.dropFirst(request.count + 1)), at: index)
      } else if line.hasPrefix(".") {
        builder.end()
      } else {
        builder.add(withoutEscapes(line), at: index)
      }
    }
    return builder.finish()
  }

  /// Lines that begin with `mark` (`#`, `//`), those that follow each other as one passage.
  static func lineComments(_ text: String, mark: String) -> [Passage] {
    var builder = PassageBuilder()
    var isCode = false
    for (index, full) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      let line = full.drop { $0 == " " || $0 == "\t" }
      guard line.hasPrefix(mark), !line.hasPrefix("#!") else {
        builder.end()
        continue
      }
      let text = line.drop { $0 == "/" || $0 == "#" }
      let words = text.drop { $0 == " " }
      if words.hasPrefix("```") { isCode.toggle() }
      if isCode || words.hasPrefix("```") || text.hasPrefix("     ") {
        builder.end()
        continue
      }
      if words.isEmpty || startsItem(words) || words.hasPrefix("|") { builder.end() }
      if !words.isEmpty { builder.add(String(words), at: index) }
    }
    return builder.finish()
  }

  /// Blocks between `/*` and `*/` of C.
  static func blockComments(_ text: String) -> [Passage] {
    var builder = PassageBuilder()
    var isInside = false
    for (index, full) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      var line = full.drop { $0 == " " }
      if !isInside, let open = line.firstRange(of: "/*") {
        isInside = true
        line = line[open.upperBound...]
      }
      guard isInside else { continue }
      let close = line.firstRange(of: "*/")
      let text = line[..<(close?.lowerBound ?? line.endIndex)].drop { $0 == "*" }
      let words = text.drop { $0 == " " || $0 == "*" }
      if words.isEmpty || text.hasPrefix("   ") { builder.end() } else { builder.add(String(words), at: index) }
      if close != nil {
        isInside = false
        builder.end()
      }
    }
    return builder.finish()
  }

  /// The string literals of Swift that hold at least three words; an interpolation is the one word `code`.
  static func literals(_ text: String) -> [Passage] {
    var found: [Passage] = []
    var isMultiline = false
    for (index, full) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      let line = full.drop { $0 == " " }
      if line.hasPrefix("//") { continue }
      if line.contains("\"\"\"") {
        isMultiline.toggle()
      } else if isMultiline {
        found.append(Passage(line: index + 1, text: withoutInterpolations(line), isFragment: true))
      } else if line.contains("\"") {
        found += strings(in: line).map { Passage(line: index + 1, text: $0, isFragment: true) }
      }
    }
    return found.filter { passage in passage.text.split(separator: " ").count >= 3 }
  }
}

extension Prose {
  private static func startsItem(_ line: Substring) -> Bool {
    line.hasPrefix("- ") || line.hasPrefix("* ") || line.prefix(3).contains(/^\d\d?\./)
  }

  /// `[text](target)` becomes `text`.
  private static func withoutLinks(_ text: String) -> String {
    guard text.contains("](") else { return text }
    var (result, rest) = ("", text[...])
    while let end = rest.firstRange(of: "](") {
      result += rest[..<end.lowerBound]
      rest = rest[end.upperBound...].drop { $0 != ")" }.dropFirst()
    }
    return (result + rest).replacing("[", with: "")
  }

  private static let fontRequests: Set<Substring> = [
    ".Cm", ".Fl", ".Ar", ".Xr", ".Pa", ".Nm", ".Ev", ".Ic", ".Li", ".Va", ".Er",
  ]

  /// The operands of a request as code, and the mark that follows them.
  private static func code(of operands: Substring) -> String {
    let marks = Substring(operands.reversed().prefix { $0.isPunctuation || $0 == " " }.reversed())
    return "`operands`" + marks.replacing(" ", with: "")
  }

  private static func withoutEscapes(_ line: Substring) -> String {
    String(line).replacing("\\(dq", with: "\"").replacing("\\-", with: "-").replacing("\\&", with: "")
  }

  private static func strings(in line: Substring) -> [String] {
    var (found, current, depth): ([String], [UInt8]?, Int) = ([], nil, 0)
    let bytes = Array(line.utf8)
    var index = 0
    while index < bytes.count {
      let byte = bytes[index]
      if depth > 0 {
        depth += byte == UInt8(ascii: "(") ? 1 : byte == UInt8(ascii: ")") ? -1 : 0
      } else if byte == UInt8(ascii: "\\"), current != nil {
        index += 1
        if index < bytes.count, bytes[index] == UInt8(ascii: "(") {
          depth = 1
          current?.append(contentsOf: "code".utf8)
        } else {
          current?.append(UInt8(ascii: " "))
        }
      } else if byte == UInt8(ascii: "\"") {
        if let text = current { found.append(String(decoding: text, as: UTF8.self)) }
        current = current == nil ? [] : nil
      } else {
        current?.append(byte)
      }
      index += 1
    }
    return found
  }

  private static func withoutInterpolations(_ line: Substring) -> String {
    strings(in: "\"\(line)\"").joined(separator: " ")
  }
}

/// Joins lines that follow each other to passages.
private struct PassageBuilder {
  private var found: [Prose.Passage] = []
  private var open: Prose.Passage?

  /// - Parameter index: of the line, from 0.
  mutating func add(_ text: String, at index: Int) {
    if open == nil { open = Prose.Passage(line: index + 1, text: text) } else { open?.text += "\n" + text }
  }

  mutating func fragment(_ text: String, at index: Int) {
    end()
    found.append(Prose.Passage(line: index + 1, text: text, isFragment: true))
  }

  mutating func end() {
    if let open { found.append(open) }
    open = nil
  }

  mutating func finish() -> [Prose.Passage] {
    end()
    return found
  }
}
