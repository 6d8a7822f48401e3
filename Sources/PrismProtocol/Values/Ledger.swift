/// Where every report of one namespace and kind went. In the store its counters change in the same transaction as the
/// rows they speak of, so that after every commit `stored` equals the sum of the others (docs/store.md).
public struct Ledger: Codable, Equatable, Sendable {
  /// The places where a stored row is, or where it went.
  public enum Account: String, Codable, Sendable, CaseIterable {
    case waiting, claimed, delivered, expired, evicted, cleared, dead, removed, corrupt
    /// In the ring of its namespace (`keep: ring`), or given up there for newer ones.
    case kept, overwritten
  }

  /// Rows that were ever stored.
  public var stored = 0
  /// Of those that are not 0.
  private var counts: [Account: Int] = [:]

  public init() {}

  public subscript(account: Account) -> Int {
    get { counts[account] ?? 0 }
    set { counts[account] = newValue == 0 ? nil : newValue }
  }

  /// Rows that are to be sent.
  public var unsent: Int { self[.waiting] + self[.claimed] }

  /// The identity of the ledger.
  public var isBalanced: Bool { stored == counts.values.reduce(0, +) }

  /// Moves `count` rows from one account to another; `stored` stays.
  public mutating func move(_ count: Int, from source: Account, to target: Account) {
    self[source] -= count
    self[target] += count
  }

  /// Marks this number of the rows that wait or are claimed as claimed. Returns false if there are fewer; then all of
  /// them are claimed.
  @discardableResult
  public mutating func count(claimed: Int) -> Bool {
    let isPossible = claimed <= unsent
    move(min(claimed - self[.claimed], self[.waiting]), from: .waiting, to: .claimed)
    return isPossible
  }

  /// The value of `Prism-Ledger` (docs/packet.md): what was lost, and why, for the receiver to tell by itself.
  /// - Parameter store: the one that gave the last receipt.
  public func header(epoch: String, store: StoreMark?) -> String {
    let lost: [Account] = [.delivered, .expired, .evicted, .cleared, .dead, .removed]
    let ring: [Account] = self[.kept] + self[.overwritten] > 0 ? [.kept, .overwritten] : []
    let counts = (lost + ring).reduce("epoch=\(epoch);stored=\(stored)") { "\($0);\($1.rawValue)=\(self[$1])" }
    return store.map { "\(counts);\(StoreMark.member)=\($0)" } ?? counts
  }
}
