/// Keys that wait for work, served by deficit round robin (Shreedhar and Varghese, 1995). Each key in turn may cause
/// `quantum` cost units. A turn that costs more is paid for with the turns after it, even if the key stops waiting
/// meanwhile. Pure.
struct DeficitRing<Key: Hashable & Sendable>: Sendable {
  private struct Entry: Sendable {
    /// Cost units that are left in this turn; negative: a debt.
    var credit: Int
    var isWaiting = true
  }

  /// Keys that an empty ring keeps its memory for.
  private static var keptMax: Int { 64 }

  private let quantum: Int
  private var entries: [Key: Entry] = [:]
  private var order = Ring<Key>()
  private var waiting = 0

  init(quantum: Int) { self.quantum = quantum }

  var isEmpty: Bool { waiting == 0 }

  /// A new key waits behind all others.
  mutating func add(_ key: Key) {
    if let place = entries.index(forKey: key) {
      guard !entries.values[place].isWaiting else { return }
      entries.values[place].isWaiting = true
    } else {
      entries[key] = Entry(credit: quantum)
      order.append(key)
    }
    waiting += 1
  }

  /// Charges a key that waits for what its work cost.
  /// - Parameter waits: it waits for another turn.
  mutating func endTurn(_ key: Key, cost: Int, waits: Bool) {
    guard let place = entries.index(forKey: key) else { return }
    entries.values[place].credit -= cost
    guard !waits, entries.values[place].isWaiting else { return }
    waiting -= 1
    entries.values[place].isWaiting = false
    if isEmpty { forgetDebts() }
  }

  /// No key waits: a debt would make no difference. A small ring is emptied in place, since it is filled again soon.
  private mutating func forgetDebts() {
    entries.removeAll(keepingCapacity: entries.capacity <= Self.keptMax)
    order.removeAll()
  }

  /// The key whose turn it is, and how much it may cost; nil if no key waits.
  mutating func next() -> (key: Key, credit: Int)? {
    guard !isEmpty else { return nil }
    while let key = order.first, let entry = entries[key] {
      if entry.isWaiting && entry.credit > 0 { return (key, entry.credit) }
      order.removeFirst()
      let credit = min(quantum, entry.credit + quantum)
      if !entry.isWaiting && credit == quantum {
        entries[key] = nil
      } else {
        entries[key]?.credit = credit
        order.append(key)
      }
    }
    return nil
  }
}
