public import PrismProtocol

/// Decides which batches the next commit takes: from the users in turn, and of each user from its connections in turn. So a
/// user that sends more than the store can take makes only itself wait. Pure; each connection keeps its order.
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
  }

  private struct User: Sendable {
    /// Connections that have something waiting, the next one first.
    var turn: Ring<Int> = Ring()
  }

  private var users: [UInt32: User] = [:]
  /// Users that have something waiting, the next one first.
  private var turn: Ring<UInt32> = Ring()
  private var waiting: [Int: Ring<Entry>] = [:]

  /// Nothing waits.
  public init() {}

  /// Whether nothing waits.
  public var isEmpty: Bool { turn.isEmpty }
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
        users[user] = User()
        turn.append(user)
      }
      users[user]?.turn.append(connection)
    }
    waiting[connection]?.append(Entry(connection: connection, batches: batches, note: note))
  }

  /// Takes at least one entry if any waits; more while the sum stays within both limits.
  public mutating func take(rowsMax: Int, bytesMax: Int) -> [Entry] {
    var (taken, rows, bytes): ([Entry], Int, Int) = ([], 0, 0)
    while let next = peek() {
      guard taken.isEmpty || (rows + next.rows <= rowsMax && bytes + next.bytes <= bytesMax) else { break }
      taken.append(next)
      (rows, bytes) = (rows + next.rows, bytes + next.bytes)
      advance()
    }
    return taken
  }

  private func peek() -> Entry? {
    guard let user = turn.first, let connection = users[user]?.turn.first else { return nil }
    return waiting[connection]?.first
  }

  /// Drops the batch that `peek` shows; its connection and its user go to the end of their turns.
  private mutating func advance() {
    guard let user = turn.removeFirst(), let connection = users[user]?.turn.removeFirst() else { return }
    waiting[connection]?.removeFirst()
    if waiting[connection]?.isEmpty == true {
      waiting[connection] = nil
    } else {
      users[user]?.turn.append(connection)
    }
    if users[user]?.turn.isEmpty == true { users[user] = nil } else { turn.append(user) }
  }
}
