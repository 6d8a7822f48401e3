/// The members of a line that comes down, found in their place: a full answer may have a million lines, so no tree is built.
struct DownMembers {
  enum Key: Int, CaseIterable {
    case full, seq, count, op, table, id, localId, type, fields, dependsOn, time, store, unheard
  }

  private static let names = Key.allCases.map { Array("\($0)".utf8) }

  private let line: [UInt8]
  /// Of each value, by the key's number; empty: the member is missing.
  private let ranges: [Range<Int>]

  /// - Returns: nil if it is no JSON object of at most `DownLine.bytesMax` bytes, or has one of the keys twice.
  init?(_ line: [UInt8]) {
    guard line.count <= DownLine.bytesMax, line.first == UInt8(ascii: "{") else { return nil }
    guard let ranges = try? Self.scan(line.span) else { return nil }  // why a line is no JSON helps no sender
    (self.line, self.ranges) = (line, ranges)
  }

  private static func scan(_ text: Span<UInt8>) throws(JSONError) -> [Range<Int>]? {
    var ranges = [Range<Int>](repeating: 0..<0, count: Key.allCases.count)
    var scanner = JSONScanner()
    guard try scanner.enter(text, close: UInt8(ascii: "}"), depth: 0) else { return nil }
    repeat {
      let key = try scanner.key(text)
      _ = scanner.next(text)
      let start = scanner.position
      try scanner.skipValue(text, depth: 1)
      guard let number = names.firstIndex(where: { key.equals($0, in: text) }) else { continue }
      guard ranges[number].isEmpty else { return nil }
      ranges[number] = start..<scanner.position
    } while try scanner.another(text, close: UInt8(ascii: "}"))
    return scanner.next(text) == nil && scanner.invalidUTF8 == nil ? ranges : nil
  }

  func has(_ key: Key) -> Bool { !ranges[key.rawValue].isEmpty }

  private func text(_ key: Key) -> ArraySlice<UInt8> { line[ranges[key.rawValue]] }

  func bool(_ key: Key) -> Bool? {
    if text(key).elementsEqual("true".utf8) { return true }
    return text(key).elementsEqual("false".utf8) ? false : nil
  }

  func integer(_ key: Key) -> Int64? { Int64(String(decoding: text(key), as: UTF8.self)) }

  func string(_ key: Key) -> String? {
    guard text(key).first == UInt8(ascii: "\"") else { return nil }
    let text = line.span
    var scanner = JSONScanner()
    scanner.position = ranges[key.rawValue].lowerBound
    return (try? scanner.string(text))?.string(in: text)
  }

  /// 1 to 128 visible ASCII characters.
  func name(_ key: Key) -> String? { string(key).flatMap { RecordID($0)?.text } }

  /// The text of the object `fields`; nil if it is no object, or longer than a record may be.
  var fields: [UInt8]? {
    let text = text(.fields)
    guard text.first == UInt8(ascii: "{"), text.count <= RecordRequest.fieldsBytesMax else { return nil }
    return Array(text)
  }

  static func append(_ key: Key, _ value: String, to line: inout [UInt8]) {
    line += Array(",\"".utf8) + names[key.rawValue] + Array("\":".utf8)
    JSONValue.append(quoted: value, to: &line)
  }
}
