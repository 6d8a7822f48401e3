/// The identity of a store at the server, made with its tables and named in each answer (docs/records.md, "Another store").
/// Text: 16 hex digits, a dot, and the life in decimal.
public struct StoreMark: Hashable, Sendable, CustomStringConvertible {
  /// Random, from 0 on. A copy of the store and a restored backup have the same one.
  public var id: Int64
  /// Counts how often the store was made of what could be read of a damaged one, from 0 on.
  public var life: Int64

  /// Its name among the members of `Prism-Ledger`.
  static let member = "store"

  public init(id: Int64, life: Int64 = 0) { (self.id, self.life) = (id, life) }

  /// The store that a `Prism-Ledger` names: the one that gave the sender's last receipt; nil: it names no store.
  public init?(ofLedger field: String) {
    let members = field.split(separator: ";").map { $0.split(separator: "=", maxSplits: 1) }
    guard let text = members.first(where: { $0.count == 2 && $0[0] == Self.member })?[1] else { return nil }
    self.init(String(text))
  }

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
