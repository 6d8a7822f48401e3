/// The common members of a `$common` line, taken apart once for all rows that share them.
public struct CommonMembers: Sendable {
  private struct Member: Sendable {
    /// Without escapes.
    var key: [UInt8]
    /// Key, colon and value as they were written.
    var text: [UInt8]
  }

  /// Each key once.
  private let members: [Member]
  /// For each slot of keys a bit for each member in it. The last bit is for all members from its place on.
  private let slots: [UInt64]
  /// All members, joined with commas.
  private let joined: [UInt8]

  /// One JSON object of all members, each key once.
  public var object: [UInt8] { [UInt8(ascii: "{")] + joined + [UInt8(ascii: "}")] }

  /// - Parameter range: of sound members in `text`.
  public init(_ text: [UInt8], _ range: Range<Int>) {
    let found = MetaMembers(text.span, range)
    members = found.members.map { Member(key: Array($0.key.utf8), text: Array(text[$0.text])) }
    joined = found.joined(text.span) { _ in true }
    var slots = [UInt64](repeating: 0, count: 256)
    for (place, member) in members.enumerated() {
      slots[Self.slot(member.key.span, 0..<member.key.count)] |= 1 << min(place, 63)
    }
    self.slots = slots
  }

  private static func slot(_ text: Span<UInt8>, _ key: Range<Int>) -> Int {
    guard !key.isEmpty else { return 0 }
    return (key.count &* 31 &+ Int(text[key.lowerBound]) &* 7 &+ Int(text[key.upperBound - 1])) & 255
  }

  /// Appends the members whose keys the row does not have itself, joined with commas.
  /// - Parameter row: the range of its members in `text`, without braces. Where it is no JSON, the keys before that count.
  public func appendMissing(to result: inout [UInt8], in text: Span<UInt8>, _ row: Range<Int>) {
    let own = places(in: text, row)
    guard !own.isEmpty else {
      result += joined
      return
    }
    var isFirst = true
    for (place, member) in members.enumerated() where !own.contains(place) {
      if !isFirst { result.append(UInt8(ascii: ",")) }
      result += member.text
      isFirst = false
    }
  }

  /// The members whose keys the row has, too: mostly there are no such members.
  private func places(in text: Span<UInt8>, _ row: Range<Int>) -> [Int] {
    var (scanner, places): (JSONScanner, [Int]) = (JSONScanner(position: row.lowerBound), [])
    scanner.forEachMember(text, to: row.upperBound) { key, _ in
      if let place = place(of: key, text) { places.append(place) }
    }
    return places
  }

  func contains(_ key: ScannedString, _ text: Span<UInt8>) -> Bool { place(of: key, text) != nil }

  private func place(of key: ScannedString, _ text: Span<UInt8>) -> Int? {
    guard !key.hasEscapes else { return members.firstIndex { key.equals($0.key, in: text) } }
    var bits = slots[Self.slot(text, key.range)]
    while bits != 0 {
      let place = bits.trailingZeroBitCount
      if place == 63 { return members[63...].firstIndex { key.equals($0.key, in: text) } }
      if key.equals(members[place].key, in: text) { return place }
      bits &= bits - 1
    }
    return nil
  }
}
