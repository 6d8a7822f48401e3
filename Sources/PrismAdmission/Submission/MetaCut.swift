import PrismProtocol

/// Cuts a meta that is too large at its longest string.
public enum MetaCut {
  /// A string is not cut below it: what is left of it tells nothing.
  public static let keptBytesMin = 16
  /// The member that says how many bytes were cut off.
  public static let marker = "TRUNCATED"
  private static let markerBytes = 24

  /// - Parameter members: of a JSON object, without braces.
  /// - Returns: members of at most `bytesMax` bytes, with `TRUNCATED`; nil where its strings are not what makes it large.
  public static func cut(_ members: [UInt8], bytesMax: Int) -> [UInt8]? {
    guard
      let tree = try? JSONValue(parsing: [UInt8(ascii: "{")] + members + [UInt8(ascii: "}")], allowsDuplicateKeys: true)
    else { return nil }
    let lengths = tree.stringBytes.sorted(by: >)
    guard let limit = limit(lengths, excess: members.count + markerBytes - bytesMax) else { return nil }
    var lost = 0
    guard case .object(let cut) = tree.cut(to: limit, &lost) else { return nil }
    let marked = JSONValue.object(cut + [.init(marker, .int(lost))])
    let result = Array(marked.bytes.dropFirst().dropLast())
    return result.count <= bytesMax ? result : nil
  }

  /// The bytes that strings are cut to, so that `excess` are saved; the longest first, no further than needed.
  private static func limit(_ lengths: [Int], excess: Int) -> Int? {
    var (sum, count) = (0, 0)
    for (index, length) in lengths.enumerated() {
      (sum, count) = (sum + length, count + 1)
      let next = index + 1 < lengths.count ? lengths[index + 1] : 0
      // All strings so far have the same length `limit`, the others stay as they are.
      let limit = (sum - excess) / count
      if sum >= excess, limit >= max(next, keptBytesMin) { return limit }
    }
    return nil
  }
}

extension JSONValue {
  /// Of every string that is a value, with its escapes.
  fileprivate var stringBytes: [Int] {
    switch self {
    case .string(let text): [text.escapedBytes]
    case .array(let elements): elements.flatMap(\.stringBytes)
    case .object(let members): members.flatMap(\.value.stringBytes)
    case .null, .bool, .number: []
    }
  }

  /// - Parameter lost: bytes that were cut off, added up.
  fileprivate func cut(to limit: Int, _ lost: inout Int) -> JSONValue {
    switch self {
    case .string(let text):
      guard text.escapedBytes > limit else { return self }
      let kept = text.prefix(escapedBytesMax: limit)
      lost += text.utf8.count - kept.utf8.count
      return .string(kept)
    case .array(let elements): return .array(elements.map { $0.cut(to: limit, &lost) })
    case .object(let members): return .object(members.map { Member($0.key, $0.value.cut(to: limit, &lost)) })
    case .null, .bool, .number: return self
    }
  }
}

extension String {
  fileprivate var escapedBytes: Int {
    var quoted: [UInt8] = []
    JSONValue.append(quoted: self, to: &quoted)
    return quoted.count - 2
  }

  /// The longest beginning that takes at most `escapedBytesMax` bytes as JSON.
  fileprivate func prefix(escapedBytesMax: Int) -> String {
    var (kept, bytes) = ("".unicodeScalars, 0)
    for scalar in unicodeScalars {
      bytes += String(scalar).escapedBytes
      if bytes > escapedBytesMax { break }
      kept.append(scalar)
    }
    return String(kept)
  }
}
