/// The identity of a store at the server, made with its tables and named in each answer (docs/records.md, "Another store").
/// Text: 16 hex digits, a dot, and the life in decimal.
public struct StoreMark: Hashable, Sendable, CustomStringConvertible {
  /// Random, from 0 on. A copy of the store and a restored backup have the same one.
  public var id: Int64
  /// Counts how often the store was made of what could be read of a damaged one, from 0 on.
  public var life: Int64

  public init(id: Int64, life: Int64 = 0) { (self.id, self.life) = (id, life) }

  public var description: String {
    let digits = String(id, radix: 16)
    return String(repeating: "0", count: max(0, 16 - digits.utf8.count)) + digits + ".\(life)"
  }

  /// nil if it is not what `description` gives.
  public init?(_ text: String) {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    guard parts.count == 2, let id = Int64(parts[0], radix: 16), let life = Int64(parts[1]), id >= 0, life >= 0 else {
      return nil
    }
    self.init(id: id, life: life)
    guard description == text else { return nil }
  }
}
