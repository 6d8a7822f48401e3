/// The value of one field of a meta, found by its path of keys. Reads the text once for each key and builds no tree.
///
/// A path goes through objects only. If a key is repeated the last value counts, as for `MetaFields`.
public struct MetaField: Sendable, Equatable {
  /// JSON's kinds of values.
  public enum Kind: Sendable { case string, number, boolean, null, list, object }

  /// Where a path leads.
  public enum Place: Sendable, Equatable {
    /// The object does not have the path's first key, or is no object in JSON.
    case noKey
    /// It has the first key, and the path leads nowhere from there.
    case noField
    /// The path leads to a value.
    case field(MetaField)
  }

  /// The value's kind, by its first byte.
  public let kind: Kind
  /// The value as it is written, with the quotes of a string.
  public let range: Range<Int>
  /// Whether it is a string with a backslash.
  public let hasEscapes: Bool

  private init(kind: Kind, range: Range<Int>, hasEscapes: Bool) {
    (self.kind, self.range, self.hasEscapes) = (kind, range, hasEscapes)
  }

  /// - Parameter path: the keys, from the outermost object on; at least one.
  public static func find(_ path: [[UInt8]], in meta: Span<UInt8>) -> Place {
    var scanner = JSONScanner()
    do throws(JSONError) {
      for (depth, key) in path.enumerated() {
        guard scanner.next(meta) == UInt8(ascii: "{"), let start = try value(of: key, &scanner, meta, depth: depth)
        else {
          return depth == 0 ? .noKey : .noField
        }
        scanner.position = start
      }
      guard let kind = scanner.next(meta).flatMap({ Self.kind($0) }) else { return .noField }
      let start = scanner.position
      let hasEscapes = kind == .string ? try scanner.string(meta).hasEscapes : false
      if kind != .string { try scanner.skipValue(meta, depth: path.count) }
      return .field(MetaField(kind: kind, range: start..<scanner.position, hasEscapes: hasEscapes))
    } catch { return .noKey }  // it is damaged
  }

  /// The place of the last member of this key; nil: there is no such member.
  private static func value(
    of key: [UInt8], _ scanner: inout JSONScanner, _ meta: Span<UInt8>, depth: Int
  ) throws(JSONError) -> Int? {
    var found: Int?
    guard try scanner.enter(meta, close: UInt8(ascii: "}"), depth: depth) else { return nil }
    repeat {
      if try scanner.key(meta).equals(key, in: meta) { found = scanner.position }
      try scanner.skipValue(meta, depth: depth + 1)
    } while try scanner.another(meta, close: UInt8(ascii: "}"))
    return found
  }

  private static func kind(_ byte: UInt8) -> Kind? {
    switch byte {
    case UInt8(ascii: "\""): .string
    case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): .number
    case UInt8(ascii: "t"), UInt8(ascii: "f"): .boolean
    case UInt8(ascii: "n"): .null
    case UInt8(ascii: "["): .list
    case UInt8(ascii: "{"): .object
    default: nil
    }
  }

  /// The bytes of a string without its quotes and escapes, of any other value as it is written.
  public func bytes(in text: Span<UInt8>) -> [UInt8] {
    var bytes: [UInt8] = []
    if kind == .string {
      ScannedString(range: range.lowerBound + 1..<range.upperBound - 1, hasEscapes: hasEscapes)
        .append(from: text, to: &bytes)
    } else {
      bytes.append(copying: text, range)
    }
    return bytes
  }
}
