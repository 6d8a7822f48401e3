/// The members of a meta one by one, for the few metas that collide with the common information or repeat a key.
public struct MetaMembers: Sendable {
  /// A key with the text of its value.
  public struct Member: Sendable, Equatable {
    /// The key without escapes.
    public var key: String
    /// Key, colon and value as they were written.
    public var text: Range<Int>
  }

  /// Each key once, in the order of their last appearance: the last one of a repeated key counts, as it does for every
  /// JSON parser.
  public let members: [Member]

  /// - Parameter range: a range of members as the scanner found it in `text`, and therefore sound.
  public init(_ text: Span<UInt8>, _ range: Range<Int>) {
    var (scanner, found): (JSONScanner, [Member]) = (JSONScanner(position: range.lowerBound), [])
    scanner.forEachMember(text, to: range.upperBound) { found.append(Member(key: $0.string(in: text), text: $1)) }
    var seen: Set<String> = []
    members = Array(found.reversed().filter { seen.insert($0.key).inserted }.reversed())
  }

  /// The members with the keys that `isKept` wants, joined with commas, each as it was written.
  public func joined(_ text: Span<UInt8>, where isKept: (String) -> Bool) -> [UInt8] {
    var result: [UInt8] = []
    for member in members where isKept(member.key) {
      if !result.isEmpty { result.append(UInt8(ascii: ",")) }
      result.append(copying: text, member.text)
    }
    return result
  }
}
