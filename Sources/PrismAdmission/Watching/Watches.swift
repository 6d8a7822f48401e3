public import PrismProtocol
import Synchronization

/// The state that a connection watches: the switches of namespaces, and tables of records. It has the last state that the
/// client got of each; of several changes that the client did not take yet only the newest is sent. Pure.
struct Watches: Sendable {
  /// Of one connection.
  static let countMax = 64

  private struct Switches {
    var sent: NamespaceSwitches
    let place: WatchPlace
  }

  var mayHaveChanges = false
  /// The rules are others than those of the last states.
  private var hasOtherRules = false

  private var switches: [String: Switches] = [:]
  private var tables: [WatchedTable.Key: WatchedTable] = [:]
  private let places: WatchPlaces

  init(_ places: WatchPlaces) { self.places = places }

  var isEmpty: Bool { switches.isEmpty && tables.isEmpty }

  /// Bytes that it holds in memory, about: asked for in each turn of the connection.
  private(set) var bytes = 0

  private func takePlace(_ userID: UInt32) throws(Refusal) -> WatchPlace {
    guard switches.count + tables.count < Self.countMax else {
      throw Refusal(.badRequest, "this connection has \(Self.countMax) watches; open another one for more")
    }
    return try places.take(userID: userID)
  }

  mutating func rulesChanged() {
    guard !isEmpty else { return }
    (mayHaveChanges, hasOtherRules) = (true, true)
  }

  // MARK: Switches

  /// Begins to watch the namespace of `question`, or asks for its state again.
  /// - Throws: `bad_request`, `unknown_namespace`, `forbidden`, `busy`; then nothing is watched in addition.
  mutating func begin(_ question: RecordQuestion, _ session: inout Session) throws(Refusal) -> NamespaceSwitches {
    let name = try question.switches()
    let place =
      if let known = switches[name]?.place { known } else { try takePlace(session.peer.accountID) }
    let now = try session.switches(of: name)
    keep(now, place)
    return now
  }

  private mutating func keep(_ now: NamespaceSwitches, _ place: WatchPlace) {
    let before = switches.updateValue(Switches(sent: now, place: place), forKey: now.namespace)
    bytes += now.watchBytes - (before?.sent.watchBytes ?? 0)
  }

  // MARK: Tables

  /// A request to watch a table is on its way to the store: changes from now on are kept for after its answer.
  /// - Parameter isSilent: they are not sent, but asked for by `hasChanged`.
  /// - Throws: `bad_request`, `busy`.
  mutating func expect(_ key: WatchedTable.Key, userID: UInt32, isSilent: Bool = false) throws(Refusal) {
    guard tables[key] == nil else { return }
    set(WatchedTable(place: try takePlace(userID), isSilent: isSilent), for: key)
  }

  /// The store answered the request. - Parameter generation: nil: it was refused.
  mutating func began(_ key: WatchedTable.Key, generation: Int64?) {
    guard var table = tables[key] else { return }
    if let generation {
      table.begin(at: generation)
      set(table, for: key)
      if table.hasChange { mayHaveChanges = true }
    } else if table.told == nil {
      set(nil, for: key)
    }
  }

  mutating func end(_ key: WatchedTable.Key) { set(nil, for: key) }

  /// A commit changed a table. - Returns: whether this connection watches it.
  mutating func note(_ change: RecordTableChange) -> Bool {
    let key = WatchedTable.Key(namespace: change.namespace, table: change.table)
    guard var table = tables[key] else { return false }
    table.note(change)
    set(table, for: key)
    if table.hasChange { mayHaveChanges = true }
    return true
  }

  /// Whether a commit changed the table after `generation`.
  func hasChanged(_ key: WatchedTable.Key, since generation: Int64) -> Bool {
    tables[key]?.newest.map { $0.generation > generation } ?? false
  }

  private mutating func set(_ table: WatchedTable?, for key: WatchedTable.Key) {
    bytes += (table?.bytes ?? 0) - (tables[key]?.bytes ?? 0)
    tables[key] = table
  }

  // MARK: Changes

  /// Takes the changes to be sent, as lines.
  mutating func takeChanges(_ session: inout Session) -> [[UInt8]] {
    mayHaveChanges = false
    defer { hasOtherRules = false }
    return (hasOtherRules ? switchChanges(&session) : []) + tableChanges(&session)
  }

  /// The states that are others than the last ones, by name.
  private mutating func switchChanges(_ session: inout Session) -> [[UInt8]] {
    var lines: [[UInt8]] = []
    for (name, before) in switches.sorted(by: { $0.key < $1.key }) {
      // A namespace that is gone, or closed to this sender, takes nothing.
      let generation = session.rules.generation
      let now =
        (try? session.switches(of: name))
        ?? NamespaceSwitches(namespace: name, generation: generation, isGather: false, types: [])
      guard !now.says(the: before.sent) else { continue }
      keep(now, before.place)
      lines.append(AnswerText.switches(now, isChange: true))
    }
    return lines
  }

  private mutating func tableChanges(_ session: inout Session) -> [[UInt8]] {
    var lines: [[UInt8]] = []
    for (key, before) in tables.sorted(by: { $0.key < $1.key }) where before.told != nil && !before.isSilent {
      guard before.hasChange || hasOtherRules else { continue }
      do throws(Refusal) { try session.checkTable(key.table, of: key.namespace) } catch {
        set(nil, for: key)
        lines.append(AnswerText.ended(key.namespace, key.table, error))
        continue
      }
      var table = before
      guard let change = table.takeChange() else { continue }
      set(table, for: key)
      lines.append(AnswerText.changed(change))
    }
    return lines
  }
}

extension NamespaceSwitches {
  fileprivate var watchBytes: Int { types.reduce(128) { $0 + 16 + $1.utf8.count } }
}

extension Session {
  /// - Throws: `unknown_namespace`, `forbidden`.
  fileprivate mutating func switches(of name: String) throws(Refusal) -> NamespaceSwitches {
    let namespace = try namespace(named: name)
    return NamespaceSwitches(
      namespace: name, generation: rules.generation, isGather: namespace.isGather, types: namespace.typeNames)
  }
}

/// A table of records that a connection watches. Pure.
public struct WatchedTable: Sendable {
  /// The table, by its names.
  public struct Key: Hashable, Sendable, Comparable {
    /// The namespace of the table.
    public var namespace: NamespaceName
    /// The name of the table.
    public var table: RecordTableName

    public init(namespace: NamespaceName, table: RecordTableName) { (self.namespace, self.table) = (namespace, table) }

    public static func < (a: Self, b: Self) -> Bool { (a.namespace, a.table) < (b.namespace, b.table) }
  }

  let place: WatchPlace
  /// Its changes are asked for (`newest`), and not sent.
  let isSilent: Bool
  /// The generation that the client has; nil: the answer is still to come.
  private(set) var told: Int64?
  /// The newest change that the client does not have.
  private(set) var newest: RecordTableChange?

  var bytes: Int { 192 + (newest?.bytes ?? 0) }
  var hasChange: Bool { told != nil && newest != nil && !isSilent }

  /// The client gets this generation as the answer; changes of earlier commits are part of it.
  mutating func begin(at generation: Int64) {
    told = generation
    if let known = newest, known.generation <= generation { newest = nil }
  }

  /// A second change before the first is taken: the client gets one line, without ids.
  mutating func note(_ change: RecordTableChange) {
    let isSecond = newest != nil
    newest = change
    if isSecond || isSilent { newest?.ids = nil }
  }

  mutating func takeChange() -> RecordTableChange? {
    guard let change = newest else { return nil }
    (told, newest) = (change.generation, nil)
    return change
  }
}

/// Shares the watches of all connections among their users, so that the cost of a change is bounded.
public final class WatchPlaces: Sendable {
  /// Watches of one user, over all connections.
  public static let perUserMax = 1024

  private let taken = Mutex<[UInt32: Int]>([:])
  private let count = Atomic<Int>(0)

  /// No watch is there.
  public init() {}

  /// Whether no connection watches anything.
  public var isEmpty: Bool { count.load(ordering: .relaxed) == 0 }

  /// Takes one of the user's places. - Throws: `busy` if the user has no place left.
  func take(userID: UInt32) throws(Refusal) -> WatchPlace {
    let isTaken = taken.withLock { taken in
      guard taken[userID, default: 0] < Self.perUserMax else { return false }
      taken[userID, default: 0] += 1
      return true
    }
    guard isTaken else {
      throw Refusal(
        .busy, "this user has \(Self.perUserMax) watches on all connections; end some, then watch again",
        retryMilliseconds: 10_000)
    }
    count.add(1, ordering: .relaxed)
    return WatchPlace(self, userID: userID)
  }

  fileprivate func give(back userID: UInt32) {
    count.subtract(1, ordering: .relaxed)
    taken.withLock { taken in
      let left = taken[userID, default: 0] - 1
      taken[userID] = left > 0 ? left : nil
    }
  }
}

/// One watch of a user; it is given back with the last reference.
final class WatchPlace: Sendable {
  private let places: WatchPlaces
  private let userID: UInt32

  fileprivate init(_ places: WatchPlaces, userID: UInt32) { (self.places, self.userID) = (places, userID) }

  deinit { places.give(back: userID) }
}
