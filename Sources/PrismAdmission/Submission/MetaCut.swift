import PrismProtocol

/// Cuts a meta that is too large at its longest string.
public enum MetaCut {
  /// A string is not cut below it: what is left of it tells nothing.
  public static let keptBytesMin = 16
  /// The member that says how many bytes were cut off.
  public static let marker = "TRUNCATED"
  private static let markerBytes = 24

  /// - Parameter object: a JSON object as text.
  /// - Returns: members of at most `bytesMax` bytes, with `TRUNCATED`; nil where its strings are not what makes it large.
  public static func cut(_ object: [UInt8], bytesMax: Int) -> [UInt8]? {
    guard let tree = try? JSONValue(parsing: object, allowsDuplicateKeys: true) else { return nil }
    return cut(tree, textBytes: object.count, bytesMax: bytesMax)
  }

  /// The same of a tree: its text may have 24 MiB, of which each copy counts.
  static func cut(_ tree: JSONValue, textBytes: Int, bytesMax: Int) -> [UInt8]? {
    let lengths = tree.stringBytes.sorted(by: >)
    guard let limit = limit(lengths, excess: textBytes - 2 + markerBytes - bytesMax) else { return nil }
    var lost = 0
    guard case .object(let cut) = tree.cut(to: limit, &lost) else { return nil }
    let marked = JSONValue.object(cut + [.init(marker, .int(lost))])
    let result = Array(marked.bytes.dropFirst().dropLast())
    return result.count <= bytesMax ? result : nil
  }

  /// The object's members of at most `bytesMax` bytes, with `TRUNCATED`: short ones first, then the long ones share the rest.
  /// Of a list the first elements stay.
  static func shortened(_ object: JSONValue, bytesMax: Int) -> [UInt8] {
    let whole = object.bytes.count
    let kept = object.shortened(to: bytesMax - markerBytes, levels: 8) ?? .object([])
    let members = kept.object ?? []
    let marked = JSONValue.object(members + [.init(marker, .int(max(0, whole - kept.bytes.count)))])
    return Array(marked.bytes.dropFirst().dropLast())
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
  private static let shortBytes = 128

  /// - Parameter levels: that are looked into. - Returns: nil if nothing of it fits.
  fileprivate func shortened(to bytesMax: Int, levels: Int) -> JSONValue? {
    switch self {
    case _ where bytes.count <= bytesMax: return self
    case .string(let text) where bytesMax >= 2 + MetaCut.keptBytesMin:
      return .string(text.prefix(escapedBytesMax: bytesMax - 2))
    case .array(let elements) where levels > 0:
      let kept = Self.shortened(elements.map { ("", $0) }, to: bytesMax - 2, levels: levels)
      return kept.isEmpty ? nil : .array(kept.map(\.1))
    case .object(let members) where levels > 0:
      let kept = Self.shortened(members.map { ($0.key, $0.value) }, to: bytesMax - 2, levels: levels)
      return kept.isEmpty ? nil : .object(kept.map { Member($0.0, $0.1) })
    default: return nil
    }
  }

  /// The parts of a container that fit, in their order.
  private static func shortened(
    _ parts: [(String, JSONValue)], to bytesMax: Int, levels: Int
  ) -> [(String, JSONValue)] {
    let sizes = parts.map { ($0.0.isEmpty ? 1 : $0.0.escapedBytes + 4) + $0.1.bytes.count }
    var (rest, kept) = (bytesMax, [(String, JSONValue)?](repeating: nil, count: parts.count))
    for index in parts.indices where sizes[index] <= shortBytes && sizes[index] <= rest {
      kept[index] = parts[index]
      rest -= sizes[index]
    }
    var longCount = sizes.count { $0 > shortBytes }
    for index in parts.indices where sizes[index] > shortBytes {
      let keyBytes = sizes[index] - parts[index].1.bytes.count
      // Elements of a list come in their order; members share.
      let room = parts[index].0.isEmpty ? rest : rest / longCount
      longCount -= 1
      guard let part = parts[index].1.shortened(to: min(room, rest) - keyBytes, levels: levels - 1) else { continue }
      kept[index] = (parts[index].0, part)
      rest -= keyBytes + part.bytes.count
    }
    return kept.compactMap { $0 }
  }

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
