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
