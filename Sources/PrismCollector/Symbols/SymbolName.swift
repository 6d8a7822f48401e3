/// A place in a program: an offset as its debug file counts.
struct CodePlace: Hashable, Sendable {
  let buildID: String
  let offset: UInt64
}

/// A function at a place, with its line. An inlined one is called by the next one.
struct SymbolName: Sendable, Equatable {
  private static let textBytesMax = 300, inlinesMax = 16

  /// As the program printed it; nil: it is not known.
  let function: String?
  let file: String?
  let line: Int?

  init(function: String?, file: String? = nil, line: Int? = nil) {
    (self.function, self.file, self.line) = (function, file, line)
  }

  /// Reads what `eu-addr2line -a -f -i -C` and `addr2line -a -f -i -C` print. Each address is followed by a pair of lines for each function that is inlined
  /// there, and for the one that is not.
  /// - Parameter asked: other addresses are no answer: a function may have any name.
  /// - Returns: by address, the innermost first; empty: nothing is known of it. The last answer may be cut: it is left out
  /// unless `isWhole`.
  static func answers(_ output: [UInt8], asked: Set<UInt64>, isWhole: Bool) -> [UInt64: [SymbolName]] {
    var (answers, lines, address) = ([UInt64: [SymbolName]](), [Substring](), UInt64?.none)
    for line in String(decoding: output, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false) {
      if let next = line.hasPrefix("0x") ? hex(line.dropFirst(2)) : nil, asked.contains(next) {
        if let address { answers[address] = names(lines) }
        (address, lines) = (next, [])
      } else if lines.count < 2 * inlinesMax {
        lines.append(line)
      }
    }
    if isWhole, let address { answers[address] = names(lines) }
    return answers
  }

  /// nil for the words by which reporters say that they do not know.
  static func known(_ text: Substring) -> Substring? {
    ["", "n/a", "??", "???", "<unknown>", "<unavailable>", "unknown", "<null>"].contains(text) ? nil : text
  }

  static func hex(_ digits: Substring) -> UInt64? { digits.isEmpty ? nil : UInt64(digits, radix: 16) }

  private static func names(_ lines: [Substring]) -> [SymbolName] {
    var names: [SymbolName] = []
    for place in stride(from: 0, to: lines.count - 1, by: 2) {
      let (file, line) = self.place(lines[place + 1])
      names.append(SymbolName(function: function(lines[place], isFirst: place == 0), file: file, line: line))
    }
    // The first line names the function that is not inlined too, and then with the names around it.
    if names.count > 1, let end = lines[0].lastRange(of: " in "), let last = names.last {
      let whole = text(lines[0][end.upperBound...])
      if whole?.hasSuffix(last.function ?? "") == true || whole?.contains("::\(last.function ?? "")(") == true {
        names[names.count - 1] = SymbolName(function: whole, file: last.file, line: last.line)
      }
    }
    // Code that the compiler made is in the function itself, before the functions that are inlined there.
    if names.count > 1, names[0].line == nil, names[0].function == names.last?.function { names.removeFirst() }
    return names.contains { $0.function != nil || $0.line != nil } ? names : []
  }

  /// Whether an answer names more functions than another one, or the same number and the line.
  static func saysMore(_ names: [SymbolName], than others: [SymbolName]) -> Bool {
    let lines = { (names: [SymbolName]) in names.count { $0.line != nil } }
    return (others.count, lines(others)) < (names.count, lines(names))
  }

  /// The first line may be `NAME inlined at FILE:LINE:COLUMN in NAME`.
  private static func function(_ line: Substring, isFirst: Bool) -> String? {
    guard isFirst, let inlined = line.firstPlace(of: " inlined ") else { return text(line) }
    return text(line[..<inlined.lowerBound])
  }

  private static func text(_ text: Substring) -> String? {
    known(text).map { String(decoding: $0.utf8.prefix(textBytesMax), as: UTF8.self) }
  }

  /// `FILE:LINE` or `FILE:LINE:COLUMN`; line 0 is code of the compiler's.
  private static func place(_ text: Substring) -> (file: String?, line: Int?) {
    var parts = text.split(separator: ":", omittingEmptySubsequences: false)
    var numbers: [Int] = []
    while parts.count > 1, numbers.count < 2, let number = parts.last.flatMap({ Int($0) }) {
      numbers.append(number)
      parts.removeLast()
    }
    guard let line = numbers.last, line > 0, let file = self.text(parts.joined(separator: ":")[...]) else {
      return (nil, nil)
    }
    return (file, line)
  }
}
