public import PrismProtocol

/// Decides what the next commit takes: batches from the users in turn, and of each user from its connections in turn, so
/// that one that sends more than the store can take makes only itself wait. Pure; each connection's order is kept.
public struct CommitComposer: Sendable {
  public struct Entry: Sendable {
    public let connection: Int
    public let batch: ReportBatch
    /// A batch costs the store about as much as some rows, whatever it holds.
    var rows: Int { batch.rows.count + 3 }
    var bytes: Int { BatchWriter.bytes(of: batch) }
  }

  private struct User: Sendable {
    /// Connections that have something waiting, the next one first.
    var turn: Ring<Int> = Ring()
  }

  private var users: [UInt32: User] = [:]
  /// Users that have something waiting, the next one first.
  private var turn: Ring<UInt32> = Ring()
  private var waiting: [Int: Ring<Entry>] = [:]

  public init() {}

  public var isEmpty: Bool { turn.isEmpty }
  /// Whether batches of several users wait.
  public var isShared: Bool { turn.count > 1 }

  public mutating func add(_ batch: ReportBatch, connection: Int, user: UInt32) {
    if waiting[connection] == nil {
      waiting[connection] = Ring()
      if users[user] == nil {
        users[user] = User()
        turn.append(user)
      }
      users[user]?.turn.append(connection)
    }
    waiting[connection]?.append(Entry(connection: connection, batch: batch))
  }

  /// At least one batch where any waits; more while the sum stays within both limits.
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

/// A queue in an array whose front is given back in strides, so that taking from it costs nothing.
public struct Ring<Element> {
  private var elements: [Element?] = []
  private var head = 0

  public init() {}
  public var isEmpty: Bool { head == elements.count }
  public var count: Int { elements.count - head }
  public var first: Element? { isEmpty ? nil : elements[head] }

  public mutating func append(_ element: Element) { elements.append(element) }

  @discardableResult
  public mutating func removeFirst() -> Element? {
    guard !isEmpty else { return nil }
    let element = elements[head]
    elements[head] = nil
    head += 1
    if head >= 32 && head * 2 >= elements.count {
      elements.removeFirst(head)
      head = 0
    }
    return element
  }

  /// Changes the last element in place. - Returns: nil when there is none.
  public mutating func withLast<Result>(_ body: (inout Element) -> Result) -> Result? {
    guard !isEmpty, var element = elements[elements.count - 1] else { return nil }
    elements[elements.count - 1] = nil  // so that it isn't copied when it is changed
    defer { elements[elements.count - 1] = element }
    return body(&element)
  }

  public mutating func withFirst<Result>(_ body: (inout Element) -> Result) -> Result? {
    guard !isEmpty, var element = elements[head] else { return nil }
    elements[head] = nil
    defer { elements[head] = element }
    return body(&element)
  }
}

extension Ring: Sendable where Element: Sendable {}
