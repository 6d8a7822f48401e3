public import PrismProtocol

/// Decides which batches the next commit takes: the users share it by start-time fair queueing (Goyal, Vin and Cheng, 1996),
/// and of each user its connections have turns. So a user that sends more than the store can take makes only itself wait, and a
/// user with one report does not wait behind the batches of the others. Pure; each connection keeps its order.
public struct CommitComposer: Sendable {
  /// Batches of one connection or group that one commit takes together.
  public struct Entry: Sendable {
    /// The number of the connection or group.
    public let connection: Int
    /// Committed together.
    public let batches: [ReportBatch]
    /// Stored with the batches; nil if there is no note.
    public let note: SubmissionGroup.Note?
    /// A batch costs the store about as much as three rows, beside its own.
    var rows: Int { batches.reduce(0) { $0 + $1.rows.count + 3 } }
    var bytes: Int { batches.reduce(0) { $0 + BatchWriter.bytes(of: $1) } }
    /// The share that it uses up.
    var cost: Int { rows + bytes / 512 }
  }

  private struct User: Sendable {
    /// Connections that have something waiting, the next one first.
    var turn: Ring<Int> = Ring()
    /// The sum of what it was served, at least that of the others when it came.
    var start: Int
    /// Of users that are equal the one that came first.
    let number: Int
  }

  private var users: [UInt32: User] = [:]
  private var waiting: [Int: Ring<Entry>] = [:]
  /// The `start` of the entry that was taken last.
  private var now = 0
  /// The `start` of users that wait for nothing, where it is past `now`: they do not come back as new ones.
  private var served: [UInt32: Int] = [:]
  private var lastNumber = 0

  /// Nothing waits.
  public init() {}

  /// Whether nothing waits.
  public var isEmpty: Bool { users.isEmpty }
  /// Whether batches of several connections wait.
  public var isShared: Bool { waiting.count > 1 }

  /// Adds a batch of a connection behind those that wait already.
  public mutating func add(_ batch: ReportBatch, connection: Int, user: UInt32) {
    add([batch], note: nil, connection: connection, user: user)
  }

  /// - Parameter batches: taken by one commit, with `note`.
  public mutating func add(_ batches: [ReportBatch], note: SubmissionGroup.Note?, connection: Int, user: UInt32) {
    if waiting[connection] == nil {
      waiting[connection] = Ring()
      if users[user] == nil {
        lastNumber += 1
        users[user] = User(start: max(now, served.removeValue(forKey: user) ?? now), number: lastNumber)
      }
      users[user]?.turn.append(connection)
    }
    waiting[connection]?.append(Entry(connection: connection, batches: batches, note: note))
  }

  /// Takes at least one entry if any waits; more while the sum stays within both limits.
  public mutating func take(rowsMax: Int, bytesMax: Int) -> [Entry] {
    var (taken, rows, bytes): ([Entry], Int, Int) = ([], 0, 0)
    while let (user, next) = peek() {
      guard taken.isEmpty || (rows + next.rows <= rowsMax && bytes + next.bytes <= bytesMax) else { break }
      taken.append(next)
      (rows, bytes) = (rows + next.rows, bytes + next.bytes)
      advance(user, cost: next.cost)
    }
    if isEmpty { (now, served) = (0, [:]) } else { served = served.filter { $0.value > now } }
    return taken
  }

  /// The entry that ends first if the users are served side by side.
  private func peek() -> (user: UInt32, entry: Entry)? {
    var (best, end, number): ((user: UInt32, entry: Entry)?, Int, Int) = (nil, .max, .max)
    for (user, state) in users {
      guard let entry = state.turn.first.flatMap({ waiting[$0]?.first }) else { continue }
      let itsEnd = state.start + entry.cost
      if (itsEnd, state.number) < (end, number) { (best, end, number) = ((user, entry), itsEnd, state.number) }
    }
    return best
  }

  /// Drops the entry that `peek` shows; its connection goes to the end of the user's turns.
  private mutating func advance(_ user: UInt32, cost: Int) {
    guard let place = users.index(forKey: user), let connection = users.values[place].turn.removeFirst() else { return }
    now = max(now, users.values[place].start)
    users.values[place].start += cost
    waiting[connection]?.removeFirst()
    if waiting[connection]?.isEmpty == true {
      waiting[connection] = nil
    } else {
      users.values[place].turn.append(connection)
    }
    if users.values[place].turn.isEmpty { served[user] = users.remove(at: place).value.start }
  }
}
