public import PrismProtocol

/// Decides which batches the next commit takes: the users share it by start-time fair queueing (Goyal, Vin and Cheng, 1996),
/// and of each user its connections have turns (`ConnectionTurns`). So a user that sends more than the store can take makes only
/// itself wait, and a connection with one report does not wait behind the batches of the others. Pure; each connection keeps
/// its order.
public struct CommitComposer: Sendable {
  /// Batches of one connection or group that one commit takes together.
  public struct Entry: Sendable {
    /// The number of the connection or group.
    public let connection: Int
    /// Committed together.
    public let batches: [ReportBatch]
    /// Stored with the batches; nil if there is no note.
    public let note: BatchNote?
    let rows: Int
    let bytes: Int
    /// The share that it uses up.
    var cost: Int { rows + bytes / 512 }
    /// A tenth of what a shared commit takes.
    var isSmall: Bool { cost <= 100 }
    private let isGroup: Bool
    /// Of a client that does not wait for the answer to each report; that of a group has to.
    public var isOfStream: Bool { !isSmall && !isGroup }

    fileprivate init(connection: Int, batches: [ReportBatch], note: BatchNote?, isGroup: Bool) {
      (self.connection, self.batches, self.note, self.isGroup) = (connection, batches, note, isGroup)
      // A batch costs the store about as much as three rows, beside its own, and a KiB of fields or of an answer as one.
      var (rows, bytes) = (0, 0)
      for batch in batches {
        rows += batch.rows.count + 3 + (batch.record.map { $0.answerBytesMax + $0.memoryBytes } ?? 0) / 1024
        bytes += BatchWriter.bytes(of: batch)
      }
      (self.rows, self.bytes) = (rows, bytes)
    }
  }

  private struct User: Sendable {
    var turns = ConnectionTurns()
    /// The sum of what it was served, at least that of the others when it came.
    var start: Int
    /// Of users that are equal the one that came first.
    let number: Int
  }

  /// The most that one commit takes. Larger transactions are no faster, and every client waits for them.
  private static let commitMax = (rows: 4000, bytes: 4 * 1024 * 1024)
  /// The most while several connections are open: a report that arrives within a commit waits for its end.
  private static let sharedCommitMax = (rows: 1000, bytes: 1024 * 1024)
  /// Of these rows the most that are of streams: a full batch.
  private static let sharedStreamRowsMax = 300

  private var users: [UInt32: User] = [:]
  private var waiting: [Int: Ring<Entry>] = [:]
  /// The `start` of the entry that was taken last.
  private var now = 0
  /// The `start` of users that stopped waiting before others, where it is past `now`: they do not come back as new ones.
  private var served: [UInt32: Int] = [:]
  private var lastNumber = 0
  /// The last commit left a large entry out.
  private var isTurnOfLarge = false

  /// Nothing waits.
  public init() {}

  /// Whether nothing waits.
  public var isEmpty: Bool { users.isEmpty }
  /// Whether batches of several connections wait.
  public var isShared: Bool { waiting.count > 1 }

  /// Adds a batch of a connection behind those that wait already.
  public mutating func add(_ batch: ReportBatch, connection: Int, user: UInt32) {
    add(Entry(connection: connection, batches: [batch], note: nil, isGroup: false), user: user)
  }

  /// - Parameter batches: taken by one commit, with `note`.
  public mutating func add(_ batches: [ReportBatch], note: BatchNote?, connection: Int, user: UInt32) {
    add(Entry(connection: connection, batches: batches, note: note, isGroup: true), user: user)
  }

  private mutating func add(_ entry: Entry, user: UInt32) {
    let connection = entry.connection
    var entries = waiting.removeValue(forKey: connection) ?? Ring()
    if entries.isEmpty {
      var state = users.removeValue(forKey: user) ?? newcomer(user)
      state.turns.add(connection, cost: entry.cost, isSmall: entry.isSmall)
      users[user] = state
    }
    entries.append(entry)
    waiting[connection] = entries
  }

  private mutating func newcomer(_ user: UInt32) -> User {
    lastNumber += 1
    return User(start: max(now, served.removeValue(forKey: user) ?? now), number: lastNumber)
  }

  /// Takes the entries of the next commit: within the limit, or one that is larger, which has the commit for itself. Small ones
  /// that wait beside a large one have a commit of their own, which is answered soon; the next commit takes the large one.
  /// - Parameter hasContention: several connections are open, or wait.
  public mutating func takeNext(hasContention: Bool) -> [Entry] {
    let limit = hasContention ? Self.sharedCommitMax : Self.commitMax
    let streamRowsMax = hasContention ? Self.sharedStreamRowsMax : .max
    return take(rowsMax: limit.rows, bytesMax: limit.bytes, streamRowsMax: streamRowsMax)
  }

  /// Takes at least one entry if any waits; more while the sums stay within the limits.
  public mutating func take(rowsMax: Int, bytesMax: Int, streamRowsMax: Int = .max) -> [Entry] {
    var (taken, rows, bytes, streamRows): ([Entry], Int, Int, Int) = ([], 0, 0, 0)
    let mayEndAtLarge = !isTurnOfLarge
    isTurnOfLarge = false
    while let (user, next) = peek() {
      guard taken.isEmpty || (rows + next.rows <= rowsMax && bytes + next.bytes <= bytesMax) else { break }
      isTurnOfLarge = mayEndAtLarge && !next.isSmall && taken.last?.isSmall == true
      if isTurnOfLarge { break }
      if next.isOfStream {
        guard streamRows == 0 || streamRows + next.rows <= streamRowsMax else { break }
        streamRows += next.rows
      }
      taken.append(next)
      (rows, bytes) = (rows + next.rows, bytes + next.bytes)
      advance(user, cost: next.cost)
    }
    if !served.isEmpty { served = served.filter { $0.value > now } }
    return taken
  }

  /// The entry that ends first if the users are served side by side.
  private func peek() -> (user: UInt32, entry: Entry)? {
    var (best, end, number): ((user: UInt32, entry: Entry)?, Int, Int) = (nil, .max, .max)
    for (user, state) in users {
      guard let entry = state.turns.next.flatMap({ waiting[$0]?.first }) else { continue }
      let itsEnd = state.start + entry.cost
      if (itsEnd, state.number) < (end, number) { (best, end, number) = ((user, entry), itsEnd, state.number) }
    }
    return best
  }

  /// Drops the entry that `peek` shows; its connection goes to the end of the user's turns.
  private mutating func advance(_ user: UInt32, cost: Int) {
    // Taken out, changed and put back: so nothing is copied.
    guard var state = users.removeValue(forKey: user), let connection = state.turns.takeNext(),
      var entries = waiting.removeValue(forKey: connection)
    else { return }
    now = max(now, state.start)
    state.start += cost
    entries.removeFirst()
    if let next = entries.first {
      waiting[connection] = entries
      state.turns.add(connection, cost: next.cost, isSmall: next.isSmall)
    }
    if !state.turns.isEmpty {
      users[user] = state
    } else if isEmpty {
      (now, served) = (0, [:])  // where no user waits, all are equal again
    } else {
      served[user] = state.start
    }
  }
}

/// Tells which of one user's connections is next. Small batches have a line of their own, which goes first until they cost as
/// much as the large batch that waits. So a connection with one report does not wait behind one that floods, and a large batch
/// waits at most for as much as it costs itself.
struct ConnectionTurns: Sendable {
  private struct Place: Sendable {
    let connection: Int
    let cost: Int
  }

  private var small: Ring<Place> = Ring()
  private var large: Ring<Place> = Ring()
  /// The cost of small batches since the last large one.
  private var smallCost = 0

  var isEmpty: Bool { small.isEmpty && large.isEmpty }

  /// The connection whose turn it is; nil if no connection waits.
  var next: Int? { (isTurnOfSmall ? small : large).first?.connection }

  private var isTurnOfSmall: Bool {
    guard let first = small.first, let other = large.first else { return large.isEmpty }
    return smallCost + first.cost <= other.cost
  }

  /// - Parameter cost: of the batch that the connection has waiting.
  mutating func add(_ connection: Int, cost: Int, isSmall: Bool) {
    let place = Place(connection: connection, cost: cost)
    if isSmall { small.append(place) } else { large.append(place) }
  }

  mutating func takeNext() -> Int? {
    guard isTurnOfSmall else {
      smallCost = 0
      return large.removeFirst()?.connection
    }
    guard let place = small.removeFirst() else { return nil }
    smallCost += large.isEmpty ? 0 : place.cost
    return place.connection
  }
}
