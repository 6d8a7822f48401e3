/// Decides whose input is read and parsed next: users in turn, and of each user its connections in turn, by what their
/// work costs. So a user with many connections, or with input that is dear to parse, makes only itself wait. Pure.
public struct WorkOrder: Sendable {
  /// Cost units of a user's turn, about half a millisecond of work in a release build, and of one connection's.
  public static let userTurn = 256 * 1024
  /// Cost units of one connection's turn.
  public static let connectionTurn = 128 * 1024

  private var users = DeficitRing<UInt32>(quantum: userTurn)
  private var connections: [UInt32: DeficitRing<Int>] = [:]
  /// The empty ring of the user who stopped waiting last: the next one takes its memory.
  private var spare: DeficitRing<Int>?

  /// No connection waits.
  public init() {}

  /// Whether no connection waits.
  public var isEmpty: Bool { users.isEmpty }

  /// A connection waits for a turn; nothing happens where it does already.
  public mutating func add(_ connection: Int, user: UInt32) {
    connections[user, default: spare.take() ?? DeficitRing(quantum: Self.connectionTurn)].add(connection)
    users.add(user)
  }

  /// A connection stops waiting.
  public mutating func remove(_ connection: Int, user: UInt32) {
    endTurn(connection, user: user, cost: 0, waits: false)
  }

  /// The connection whose turn it is, and how many cost units it may spend; nil if no connection waits.
  public mutating func next() -> (connection: Int, credit: Int)? {
    guard let user = users.next(), let turn = connections[user.key]?.next() else { return nil }
    return (turn.key, min(turn.credit, user.credit))
  }

  /// Ends a turn of a connection, which may have stopped waiting within it.
  /// - Parameter waits: it waits for another turn.
  public mutating func endTurn(_ connection: Int, user: UInt32, cost: Int, waits: Bool) {
    guard let place = connections.index(forKey: user) else { return users.endTurn(user, cost: cost, waits: false) }
    connections.values[place].endTurn(connection, cost: cost, waits: waits)
    let userWaits = !connections.values[place].isEmpty
    if !userWaits { spare = connections.remove(at: place).value }
    users.endTurn(user, cost: cost, waits: userWaits)
  }
}

/// One turn of a connection: how much work its input may still cause, and how many bytes of answers it may leave unread.
public struct WorkTurn: Sendable {
  /// Cost units that are left: one for each byte that is read, and those of `Cost`.
  public private(set) var credit: Int
  private let unreadBytesMax: Int

  /// - Parameter unreadBytesMax: the turn ends when more bytes of answers wait.
  public init(credit: Int, unreadBytesMax: Int) { (self.credit, self.unreadBytesMax) = (credit, unreadBytesMax) }

  /// Has no bound: for input that is known to be small.
  public static var unbounded: WorkTurn { WorkTurn(credit: .max / 2, unreadBytesMax: .max) }

  /// Takes `units` off the credit.
  public mutating func spend(_ units: Int) { credit -= units }

  /// Whether the turn has credit left, and the answers are below the limit.
  public func goesOn(unreadBytes: Int) -> Bool { credit > 0 && unreadBytes <= unreadBytesMax }

  /// The same credit where the answers go into one response that is sent when it is whole.
  public func withoutUnreadLimit() -> WorkTurn { WorkTurn(credit: credit, unreadBytesMax: .max) }

  /// The cost of work beside a unit for each byte: the time that a byte of a report takes is the unit.
  public enum Cost {
    /// A line, of any length.
    public static let line = 64
    /// To be refused: a message is put together.
    public static let refusal = 1024
    /// A greeting, a question, a meta that collides with the common information, the head of an HTTP request.
    public static let question = 4096
    /// To read from a connection and write to it at all.
    public static let turn = 2048
  }
}

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
