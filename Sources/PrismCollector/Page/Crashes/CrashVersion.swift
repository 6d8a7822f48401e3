/// The version of an app by its numbers: `1.10` is after `1.9`, `2.0-rc1` and `2.0~rc1` are before `2.0`, `2.0-3` is after it, and
/// what follows a `+` does not count.
struct CrashVersion: Sendable, Equatable {
  private let numbers: [UInt64]
  /// -1: before the version without a suffix; 0: without a suffix; 1: after it.
  private let rank: Int
  private let suffix: [UInt64]

  /// - Returns: nil: the text does not begin with numbers.
  init?(_ text: Substring) {
    let plain = (text.hasPrefix("v") ? text.dropFirst() : text).prefix { $0 != "+" }
    let core = plain.prefix { $0 != "-" && $0 != "~" }
    let parts = core.split(separator: ".", omittingEmptySubsequences: false).map(Self.number)
    guard !parts.contains(nil) else { return nil }
    // Missing numbers are 0.
    numbers = Array(parts.compactMap(\.self).reversed().drop { $0 == 0 }.reversed())
    let rest = plain.dropFirst(core.count)
    suffix = rest.split { !Self.isDigit($0) }.compactMap(Self.number)
    rank = rest.isEmpty ? 0 : rest.hasPrefix("-") && rest.dropFirst().first.map(Self.isDigit) == true ? 1 : -1
  }

  private static func isDigit(_ character: Character) -> Bool { character.isASCII && character.isNumber }

  private static func number(_ text: Substring) -> UInt64? { text.allSatisfy(isDigit) ? UInt64(text) : nil }

  func isBefore(_ other: CrashVersion) -> Bool {
    if numbers != other.numbers { return numbers.lexicographicallyPrecedes(other.numbers) }
    if rank != other.rank { return rank < other.rank }
    return suffix.lexicographicallyPrecedes(other.suffix)
  }
}
