import PrismBase
import PrismProtocol

/// The meta of a report whose sender can't send it again (docs/crash-spool.md, "What is mended"). It says in `MENDED` what
/// was changed; a text that it does not hold whole is the payload. Pure.
public struct MendedMeta: Sendable, Equatable {
  /// The member that says what was changed: `utf8`, `json`, `cut`, or `text`.
  public static let marker = "MENDED"
  private static let textKey = "TEXT"
  private static let textBytesMax = 2048
  private static let markerBytes = 40
  /// A longer text is not read as JSON: its tree takes many times its bytes.
  private static let readBytesMax = 256 * 1024

  /// A JSON object.
  public let meta: [UInt8]
  /// The text as it came; nil if the meta has all of it.
  public private(set) var payload: [UInt8]?

  /// - Parameter text: a JSON object, or a text that was meant to be one.
  /// - Parameter bytesMax: the most that the meta may have.
  public init(_ text: [UInt8], bytesMax: Int) {
    guard text.count <= Self.readBytesMax else {
      (meta, payload) = (Self.beginning(of: text, "cut", bytesMax: bytesMax), text)
      return
    }
    let isSound = Self.isObject(text)
    var (object, marks) = isSound ? (text, []) : Self.mended(text)
    guard isSound || Self.isObject(object) else {
      meta = Self.beginning(of: text, "text", bytesMax: bytesMax)
      payload = text.isEmpty ? nil : text
      return
    }
    if object.count + Self.markerBytes > bytesMax {
      payload = text
      guard let cut = MetaCut.cut(object, bytesMax: bytesMax - Self.markerBytes) else {
        meta = Self.beginning(of: text, "cut", bytesMax: bytesMax)
        return
      }
      marks.append("cut")
      object = [UInt8(ascii: "{")] + cut + [UInt8(ascii: "}")]
    }
    guard !marks.isEmpty else {
      meta = object
      return
    }
    let mark = Array(",\"\(Self.marker)\":\"\(marks.joined(separator: ", "))\"}".utf8)
    meta = [UInt8(ascii: "{")] + Self.members(of: object) + mark
  }

  /// The text with each fault replaced that has a replacement (docs/crash-spool.md, "What is mended").
  public static func sound(_ text: [UInt8]) -> [UInt8] { mended(text).text }

  private static func isObject(_ text: [UInt8]) -> Bool {
    guard case .object(let members)? = try? JSONValue(parsing: text, allowsDuplicateKeys: true) else { return false }
    return !members.isEmpty
  }

  /// - Parameter object: a JSON object, with white space around it at most.
  private static func members(of object: [UInt8]) -> [UInt8] {
    guard let start = object.firstIndex(of: UInt8(ascii: "{")), let end = object.lastIndex(of: UInt8(ascii: "}")) else {
      return []
    }
    return Array(object[(start + 1)..<end])
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
  private static func mended(_ text: [UInt8]) -> (text: [UInt8], marks: [String]) {
    var source = text[...]
    if source.starts(with: [0xEF, 0xBB, 0xBF]) { source = source.dropFirst(3) }
    while source.last == 0 { source.removeLast() }
    let whole = Array(String(decoding: source, as: UTF8.self).utf8)
    var (isUTF8, isJSON) = (whole.elementsEqual(text), true)
    var (result, index, isString): ([UInt8], Int, Bool) = ([], 0, false)
    result.reserveCapacity(whole.count + 64)
    while index < whole.count {
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
        let escape = Escape(whole[index...])
        switch escape {
        case .sound(let count):
          result.append(byte)
          result += whole[index..<index + count]
          index += count
        case .half:
          isUTF8 = false
          result += "\\ufffd".utf8
          index += 5
        case .stray:
          isJSON = false
          result += "\\\\".utf8
        }
      default: result.append(byte)
      }
    }
    return (result, (isUTF8 ? [] : ["utf8"]) + (isJSON ? [] : ["json"]))
  }

  /// The bytes behind a backslash.
  private enum Escape {
    /// An escape, or both halves of a pair, with its bytes.
    case sound(Int)
    /// Half of a surrogate pair.
    case half
    /// No escape of JSON.
    case stray

    init(_ text: ArraySlice<UInt8>) {
      guard let first = text.first, "\"\\/bfnrtu".utf8.contains(first) else {
        self = .stray
        return
      }
      guard first == UInt8(ascii: "u") else {
        self = .sound(1)
        return
      }
      guard let unit = Self.unit(text) else {
        self = .stray
        return
      }
      guard 0xD800..<0xE000 ~= unit else {
        self = .sound(5)
        return
      }
      let rest = text.dropFirst(5)
      let isPair = unit < 0xDC00 && rest.first == UInt8(ascii: "\\")
      self = isPair && Self.unit(rest.dropFirst()).map { 0xDC00..<0xE000 ~= $0 } == true ? .sound(11) : .half
    }

    /// - Parameter text: `uXXXX`, and what follows it.
    private static func unit(_ text: ArraySlice<UInt8>) -> UInt32? {
      guard text.first == UInt8(ascii: "u") else { return nil }
      let digits = text.dropFirst().prefix(4).compactMap { Hex.digit($0) }
      return digits.count == 4 ? digits.reduce(0) { $0 << 4 | UInt32($1) } : nil
    }
  }
}
