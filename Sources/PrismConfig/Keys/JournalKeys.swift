import PrismProtocol

extension JournalMatch {
  private typealias Key = ConfigurationKey<JournalMatch>

  static let keys = KeyTable(
    [
      Key("unit", .journalText, optional: \.unit, default: "any", "the name of the entry's systemd unit"),
      Key("identifier", .journalText, optional: \.identifier, default: "any", "the program's name for the journal"),
      Key(
        "priority", .priorities, optional: \.priority, default: "any",
        "a priority or a range of them, from 0 (emergency) to 7 (debug)"),
    ], defaults: JournalMatch())
}

extension ValueForm where Value == String {
  fileprivate static var journalText: Self { .text(bytesMax: 256) }
}

extension ValueForm where Value == ClosedRange<Int> {
  /// `3`, or `0..3`.
  fileprivate static var priorities: Self {
    .text("a priority from 0 to 7, or a range like 0..3", meaning: range) {
      .string($0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)..\($0.upperBound)")
    }
  }

  @Sendable private static func range(_ text: String) -> ClosedRange<Int>? {
    let parts = text.split(separator: "..", omittingEmptySubsequences: false).map { Int($0) }
    guard (1...2).contains(parts.count), let first = parts[0], let last = parts[parts.count - 1],
      0 <= first, first <= last, last <= 7
    else { return nil }
    return first...last
  }
}

extension ValueForm where Value == [JournalMatch] {
  static var journalMatches: Self {
    .list(
      of: .object(JournalMatch.keys, "a map like {unit: nginx.service}"), "a list of at most 64 matches",
      atMost: (64, "matches"))
  }
}
