import PrismBase
import PrismProtocol

/// A line of StatsD, as DogStatsD extends it (docs/statsd-syslog.md, "Lines of statsd"). Pure.
struct StatsdLine {
  enum Kind: UInt8, CaseIterable {
    case counter, gauge, timer, histogram, distribution, set

    var name: String { ["counter", "gauge", "timer", "histogram", "distribution", "set"][Int(rawValue)] }

    fileprivate init?(_ word: ArraySlice<UInt8>) {
      let words = ["c", "g", "ms", "h", "d", "s"]
      guard let index = words.firstIndex(where: { word.elementsEqual($0.utf8) }) else { return nil }
      self = Self.allCases[index]
    }
  }

  enum Fault: Error { case malformed, event, serviceCheck }

  /// Of the name and the tags, together.
  static let keyBytesMax = 1024
  private static let rateMin = 1e-6, numberMax = 1e100

  let name: ArraySlice<UInt8>
  let kind: Kind
  /// Texts of a set, numbers of all others.
  let values: [ArraySlice<UInt8>]
  /// The share of samples that the sender sends, 0.000001 to 1.
  private(set) var rate = 1.0
  /// As they came: `key:value` with commas between.
  private(set) var tags: ArraySlice<UInt8> = []

  /// - Throws: `malformed`, and by name those that are no samples.
  init(_ line: ArraySlice<UInt8>) throws(Fault) {
    if line.starts(with: "_e{".utf8) { throw .event }
    if line.starts(with: "_sc|".utf8) { throw .serviceCheck }
    guard let bar = line.firstIndex(of: .bar), let colon = line[..<bar].firstIndex(of: .colon), colon > line.startIndex
    else { throw .malformed }
    let sections = line[(bar + 1)...].split(separator: .bar, omittingEmptySubsequences: false)
    guard let kind = Kind(sections[0]) else { throw .malformed }
    (name, self.kind) = (line[..<colon], kind)
    let content = line[(colon + 1)..<bar]
    values = kind == .set ? [content] : content.split(separator: .colon, omittingEmptySubsequences: false)
    for section in sections.dropFirst() {
      switch section.first {
      case UInt8(ascii: "@"):
        guard let rate = Self.number(section.dropFirst()), Self.rateMin...1 ~= rate else { throw .malformed }
        self.rate = rate
      case UInt8(ascii: "#"): tags = section.dropFirst()
      // The container's id, a time, and what may come with them.
      case .some(let byte) where byte.isASCIILetter: break
      default: throw .malformed
      }
    }
    let isSound = values.allSatisfy { kind == .set ? !$0.isEmpty : Self.number($0) != nil }
    guard isSound, name.count + tags.count <= Self.keyBytesMax else { throw .malformed }
  }

  /// nil for a text that is no decimal number.
  static func number(_ text: ArraySlice<UInt8>) -> Double? {
    let digits = text.first == UInt8(ascii: "+") || text.first == UInt8(ascii: "-") ? text.dropFirst() : text
    guard let first = digits.first, first == UInt8(ascii: ".") || first.isASCIIDigit, text.count <= 64 else {
      return nil
    }
    if digits.count <= 15, digits.allSatisfy(\.isASCIIDigit) {
      let whole = Double(digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) })
      return text.first == UInt8(ascii: "-") ? -whole : whole
    }
    guard digits.allSatisfy({ $0.isASCIIDigit || "+-.eE".utf8.contains($0) }),
      let number = Double(String(decoding: text, as: UTF8.self)), abs(number) <= numberMax
    else { return nil }
    return number
  }

  /// By their keys, so that equal tags make one group in any order; of a key that comes again the last value.
  static func members(of tags: ArraySlice<UInt8>) -> [JSONValue.Member] {
    var byKey: [String: String] = [:]
    for tag in tags.split(separator: .comma) {
      let end = tag.firstIndex(of: .colon) ?? tag.endIndex
      byKey[String(decoding: tag[..<end], as: UTF8.self)] = String(decoding: tag[end...].dropFirst(), as: UTF8.self)
    }
    return byKey.sorted { $0.key < $1.key }.map { .init($0.key, .string($0.value)) }
  }
}

extension UInt8 {
  fileprivate static let bar = UInt8(ascii: "|")
}
