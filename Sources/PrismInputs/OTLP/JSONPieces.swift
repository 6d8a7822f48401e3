/// Finds the parts of a JSON text without a tree of it: only brackets and strings are looked at, so that what is wrong within
/// a part costs that part.
struct JSONPieces {
  let input: [UInt8]

  /// The value that is the whole text. - Throws: something follows it.
  func document() throws(OTLPFault) -> Range<Int> {
    let start = spaces(from: 0)
    let end = try value(from: start)
    guard spaces(from: end) == input.count else { throw .notJSON(at: end) }
    return start..<end
  }

  func isObject(_ range: Range<Int>) -> Bool { input[range.lowerBound] == .openBrace }
  func isList(_ range: Range<Int>) -> Bool { input[range.lowerBound] == .openBracket }
  /// Whether a value says nothing: null, an empty list or object.
  func isEmpty(_ range: Range<Int>) -> Bool {
    isList(range) || isObject(range) ? spaces(from: range.lowerBound + 1) == range.upperBound - 1 : isNull(range)
  }
  func isNull(_ range: Range<Int>) -> Bool { input[range].elementsEqual("null".utf8) }

  /// The members of an object, with their keys as they are written.
  func members(_ object: Range<Int>) throws(OTLPFault) -> [(key: String, value: Range<Int>)] {
    var result: [(key: String, value: Range<Int>)] = []
    try list(object, end: .closeBrace) { (position) throws(OTLPFault) in
      guard position < object.upperBound, input[position] == .quote else { throw .notJSON(at: position) }
      let end = try string(from: position)
      let key = String(decoding: input[(position + 1)..<(end - 1)], as: UTF8.self)
      let colon = spaces(from: end)
      guard colon < object.upperBound, input[colon] == .colon else { throw .notJSON(at: colon) }
      let start = spaces(from: colon + 1)
      let valueEnd = try value(from: start)
      result.append((key, start..<valueEnd))
      return valueEnd
    }
    return result
  }

  func elements(_ list: Range<Int>) throws(OTLPFault) -> [Range<Int>] {
    var result: [Range<Int>] = []
    try self.list(list, end: .closeBracket) { (position) throws(OTLPFault) in
      let end = try value(from: position)
      result.append(position..<end)
      return end
    }
    return result
  }

  private func list(
    _ range: Range<Int>, end: UInt8, _ take: (Int) throws(OTLPFault) -> Int
  ) throws(OTLPFault) {
    var position = spaces(from: range.lowerBound + 1)
    guard input[range.upperBound - 1] == end else { throw .notJSON(at: range.upperBound - 1) }
    guard position < range.upperBound - 1 else { return }
    while true {
      position = spaces(from: try take(position))
      guard position < range.upperBound else { throw .notJSON(at: position) }
      if position == range.upperBound - 1 { return }
      guard input[position] == .comma else { throw .notJSON(at: position) }
      position = spaces(from: position + 1)
    }
  }

  private func spaces(from start: Int) -> Int {
    var position = start
    while position < input.count, Self.isSpace(input[position]) { position += 1 }
    return position
  }

  private static func isSpace(_ byte: UInt8) -> Bool {
    [UInt8(ascii: " "), UInt8(ascii: "\n"), UInt8(ascii: "\r"), UInt8(ascii: "\t")].contains(byte)
  }

  /// - Returns: the position behind the value.
  private func value(from start: Int) throws(OTLPFault) -> Int {
    guard start < input.count else { throw .notJSON(at: start) }
    switch input[start] {
    case .quote: return try string(from: start)
    case .openBrace, .openBracket: return try container(from: start)
    case .comma, .colon, .closeBrace, .closeBracket: throw .notJSON(at: start)
    default:
      var position = start
      while position < input.count, ![.comma, .closeBrace, .closeBracket].contains(input[position]),
        !Self.isSpace(input[position])
      { position += 1 }
      return position
    }
  }

  private func container(from start: Int) throws(OTLPFault) -> Int {
    var (position, depth) = (start, 0)
    while position < input.count {
      switch input[position] {
      case .quote:
        position = try string(from: position)
        continue
      case .openBrace, .openBracket: depth += 1
      case .closeBrace, .closeBracket:
        depth -= 1
        if depth == 0 { return position + 1 }
      default: break
      }
      position += 1
    }
    throw .notJSON(at: position)
  }

  private func string(from start: Int) throws(OTLPFault) -> Int {
    var position = start + 1
    while position < input.count {
      switch input[position] {
      case .backslash: position += 2
      case .quote: return position + 1
      default: position += 1
      }
    }
    throw .notJSON(at: input.count)
  }
}

extension OTLPFault {
  /// The text has no value here, or ends within one.
  fileprivate static func notJSON(at offset: Int) -> OTLPFault {
    OTLPFault(400, "the body is not JSON at byte \(offset)")
  }
}
