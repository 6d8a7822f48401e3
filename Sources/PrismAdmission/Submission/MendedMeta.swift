import PrismBase
import PrismProtocol

/// The meta of a report whose sender can't send it again (docs/crash-spool.md, "What is repaired"). It says in `MENDED` what
/// was changed; a text that it does not hold whole is the payload. Pure.
public struct MendedMeta: Sendable, Equatable {
  /// The member that says what was changed: `utf8`, `json`, `cut`, or `text`.
  public static let marker = "MENDED"
  private static let textKey = "TEXT"
  private static let textBytesMax = 2048
  private static let markerBytes = 40
  /// A longer text is reduced as it is read: its tree would take many times its bytes.
  public static let readBytesMax = 256 * 1024

  /// A JSON object.
  public let meta: [UInt8]
  /// The text as it came; nil if the meta has all of it.
  public private(set) var payload: [UInt8]?

  /// - Parameter text: a JSON object, or a text that was meant to be one.
  /// - Parameter bytesMax: the most that the meta may have.
  public init(_ text: [UInt8], bytesMax: Int) {
    guard text.count <= Self.readBytesMax else {
      let reduced =
        Self.reduced(text, bytesMax: bytesMax)
        ?? Self.mended(text, bytesMax: text.count / 4 * 5).flatMap { mended in
          Self.reduced(mended.text, mended.marks, bytesMax: bytesMax)
        }
      (meta, payload) = (reduced ?? Self.beginning(of: text, "cut", bytesMax: bytesMax), text)
      return
    }
    let sound = Self.tree(text)
    var (object, marks) = sound != nil ? (text, []) : Self.mended(text) ?? (text, [])
    guard let tree = sound ?? Self.tree(object) else {
      meta = Self.beginning(of: text, "text", bytesMax: bytesMax)
      payload = text.isEmpty ? nil : text
      return
    }
    var members = Self.members(of: object)
    if object.count + Self.markerBytes > bytesMax {
      payload = text
      members = MetaCut.cut(tree, textBytes: object.count, bytesMax: bytesMax - Self.markerBytes)[...]
      marks.append("cut")
    }
    meta = marks.isEmpty ? object : Self.marked(members, marks)
  }

  private static func marked(_ members: ArraySlice<UInt8>, _ marks: [String]) -> [UInt8] {
    Array("{".utf8) + members + Array(",\"\(marker)\":\"\(marks.joined(separator: ", "))\"}".utf8)
  }

  /// The meta of a text that is too long to be read whole. - Returns: nil for what is no JSON object.
  private static func reduced(_ text: [UInt8], _ marks: [String] = [], bytesMax: Int) -> [UInt8]? {
    let members = members(of: text)
    let around = [text[..<members.startIndex].dropLast(), text[members.endIndex...].dropFirst()]
    guard !members.isEmpty, around.joined().allSatisfy({ " \t\r\n".utf8.contains($0) }),
      let kept = ReducedMeta.reducing(text.span, members.indices, hasContent: false),
      let tree = try? JSONValue(parsingMembers: kept.members, allowsDuplicateKeys: true)
    else { return nil }
    let cut = MetaCut.cut(
      tree, textBytes: tree.bytes.count, bytesMax: bytesMax - markerBytes, lostBytes: kept.rest.lostBytes)
    return marked(cut[...], marks + ["cut"])
  }

  /// The text with each fault replaced that has a replacement (docs/crash-spool.md, "What is repaired").
  public static func sound(_ text: [UInt8]) -> [UInt8] { mended(text)?.text ?? text }

  /// nil: it is no JSON object, or has no member.
  private static func tree(_ text: [UInt8]) -> JSONValue? {
    let tree = try? JSONValue(parsing: text, allowsDuplicateKeys: true)
    return tree?.object?.isEmpty == false ? tree : nil
  }

  /// - Parameter object: a JSON object, with white space around it at most.
  private static func members(of object: [UInt8]) -> ArraySlice<UInt8> {
    guard let start = object.firstIndex(of: UInt8(ascii: "{")), let end = object.lastIndex(of: UInt8(ascii: "}")),
      start < end
    else { return [] }
    return object[(start + 1)..<end]
  }

  /// The meta of a text that is no JSON object, or can't be cut at its strings.
  private static func beginning(of text: [UInt8], _ mark: String, bytesMax: Int) -> [UInt8] {
    // A byte takes at most six bytes of JSON.
    let kept = String(decoding: text.prefix(min(textBytesMax, max(0, bytesMax - 64) / 6)), as: UTF8.self)
    return JSONValue.object([.init(textKey, .string(kept)), .init(marker, .string(mark))]).bytes
  }

  // MARK: Texts that programs take for JSON

  /// Replaces bytes that are no UTF-8 and halves of surrogate pairs. Escapes control characters and stray backslashes within
  /// strings. Leaves out a byte order mark, and zero bytes at the end.
  /// - Returns: nil: it would have more than `bytesMax`.
  private static func mended(_ text: [UInt8], bytesMax: Int = .max) -> (text: [UInt8], marks: [String])? {
    var source = text[...]
    if source.starts(with: [0xEF, 0xBB, 0xBF]) { source = source.dropFirst(3) }
    while source.last == 0 { source.removeLast() }
    let whole = Array(String(decoding: source, as: UTF8.self).utf8)
    var (isUTF8, isJSON) = (whole.elementsEqual(text), true)
    var (result, index, isString): ([UInt8], Int, Bool) = ([], 0, false)
    result.reserveCapacity(whole.count + 64)
    while index < whole.count {
      guard result.count <= bytesMax else { return nil }
      let byte = whole[index]
      index += 1
      guard isString else {
        isString = byte == UInt8(ascii: "\"")
        result.append(byte)
        continue
      }
      switch byte {
      case UInt8(ascii: "\""):
        isString = false
        result.append(byte)
      case 0..<UInt8(ascii: " "):
        isJSON = false
        result += ("\\u00" + Hex.encode([byte])).utf8
      case UInt8(ascii: "\\"):
        let unit = whole[index...].prefix(5)
        if let end = whole.span.endOfEscape(at: index - 1) {
          result += whole[(index - 1)..<end]
          index = end
        } else if unit.first == UInt8(ascii: "u"), unit.dropFirst().compactMap({ Hex.digit($0) }).count == 4 {
          isUTF8 = false
          result += "\\ufffd".utf8
          index += 5
        } else {
          isJSON = false
          result += "\\\\".utf8
        }
      default: result.append(byte)
      }
    }
    return (result, (isUTF8 ? [] : ["utf8"]) + (isJSON ? [] : ["json"]))
  }
}

/// Cuts a meta that is too large at its longest strings, or else at its longest lists.
public enum MetaCut {
  /// A string is not cut below it: what is left of it tells nothing.
  public static let keptBytesMin = 16
  /// The member that says how many bytes were cut off.
  public static let marker = "TRUNCATED"
  private static let markerBytes = 24

  /// - Parameter object: a JSON object as text.
  /// - Returns: members of at most `bytesMax` bytes, with `TRUNCATED`; nil for what is no JSON object.
  public static func cut(_ object: [UInt8], bytesMax: Int) -> [UInt8]? {
    guard let tree = try? JSONValue(parsing: object, allowsDuplicateKeys: true), tree.object != nil else { return nil }
    return cut(tree, textBytes: object.count, bytesMax: bytesMax)
  }

  /// The same of an object. - Parameter lostBytes: that were cut off before.
  static func cut(_ tree: JSONValue, textBytes: Int, bytesMax: Int, lostBytes: Int = 0) -> [UInt8] {
    cutStrings(tree, textBytes: textBytes, bytesMax: bytesMax, lostBytes)
      ?? shortened(tree, bytesMax: bytesMax, lostBytes)
  }

  /// - Returns: nil where its strings are not what makes it large.
  private static func cutStrings(
    _ tree: JSONValue, textBytes: Int, bytesMax: Int, _ lostBytes: Int
  ) -> [UInt8]? {
    let lengths = tree.stringBytes.sorted(by: >)
    guard let limit = limit(lengths, excess: textBytes - 2 + markerBytes - bytesMax) else { return nil }
    var lost = lostBytes
    guard case .object(let cut) = tree.cut(to: limit, &lost) else { return nil }
    let marked = JSONValue.object(cut + [.init(marker, .int(lost))])
    let result = Array(marked.bytes.dropFirst().dropLast())
    return result.count <= bytesMax ? result : nil
  }

  /// The object's members of at most `bytesMax` bytes, with `TRUNCATED`: short ones first, then the long ones share the rest.
  /// Of a list the first elements stay.
  private static func shortened(_ object: JSONValue, bytesMax: Int, _ lostBytes: Int) -> [UInt8] {
    let whole = object.bytes.count
    let kept = object.shortened(to: bytesMax - markerBytes, levels: 8) ?? .object([])
    let members = kept.object ?? []
    let marked = JSONValue.object(members + [.init(marker, .int(lostBytes + max(0, whole - kept.bytes.count)))])
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
  fileprivate var escapedBytes: Int { unicodeScalars.reduce(0) { $0 + JSONValue.escapedBytes($1) } }

  /// The longest beginning that takes at most `escapedBytesMax` bytes as JSON.
  fileprivate func prefix(escapedBytesMax: Int) -> String {
    var bytes = 0
    let end = unicodeScalars.firstIndex { scalar in
      bytes += JSONValue.escapedBytes(scalar)
      return bytes > escapedBytesMax
    }
    return String(unicodeScalars[..<(end ?? endIndex)])
  }
}
