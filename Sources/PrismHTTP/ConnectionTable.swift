/// The open connections, and which of them gives way when there are too many: a pure table.
///
/// A connection is proven once a request on it proved its sender. The others have at most a quarter of the places, and of those that
/// are taken by idle proven connections an eighth. An address takes places from itself first.
struct ConnectionTable: Sendable {
  struct Entry: Sendable {
    let socket: Int32
    let address: String
    /// nil while the connection waits for us.
    var deadline: Duration?
    var isProven = false
    /// Its last request is answered, and its next one has not come.
    var isIdle = false
    /// It gave way: its socket is shut down, and libmicrohttpd closes it soon.
    var isEnding = false
    /// Its last answer went out before the body was read.
    var lingers = false
    var body: (began: Duration, bytes: Int, timeMax: Duration)?
    /// Called once if the client goes before its answer; nil: nothing waits to hear that.
    var onGone: (@Sendable () -> Void)?
    /// Changes when its place in a line is no longer valid.
    fileprivate(set) var ticket: UInt64 = 0
  }

  let connectionsMax: Int
  private(set) var entries: [LibraryPointer: Entry] = [:]
  private var lastTicket: UInt64 = 0
  private var endingCount = 0
  private(set) var unprovenCount = 0
  /// Unproven connections, the oldest first; of all, and by address.
  private var unproven = ConnectionLine()
  private var unprovenOfAddress: [String: (count: Int, line: ConnectionLine)] = [:]
  /// Idle proven connections, the one that is idle longest first.
  private var idle = ConnectionLine()

  init(connectionsMax: Int) { self.connectionsMax = connectionsMax }

  /// The places that unproven connections may always have, and the most that they may have.
  var unprovenMin: Int { max(1, connectionsMax / 8) }
  var unprovenMax: Int { max(2, connectionsMax / 4) }
  /// Those that gave way are not counted.
  var openCount: Int { entries.count - endingCount }

  subscript(_ connection: LibraryPointer) -> Entry? { entries[connection] }

  mutating func change(_ connection: LibraryPointer, _ body: (inout Entry) -> Void) {
    guard var entry = entries[connection] else { return }
    body(&entry)
    entries[connection] = entry
  }

  /// - Returns: the connection that gives way for the new one, or the new one itself, and why.
  mutating func open(_ connection: LibraryPointer, _ entry: Entry) -> (LibraryPointer, CrowdedReason)? {
    close(connection)
    entries[connection] = entry
    newTicket(connection)
    if !entry.isProven { lineUp(connection, entry.address) }
    guard let (victim, reason) = victim(for: connection, entry) else { return nil }
    end(victim)
    return (victim, reason)
  }

  mutating func close(_ connection: LibraryPointer) {
    guard let entry = entries[connection] else { return }
    if entry.isEnding { endingCount -= 1 } else { leave(entry) }
    entries[connection] = nil
  }

  mutating func prove(_ connection: LibraryPointer) {
    guard let entry = entries[connection], !entry.isProven, !entry.isEnding else { return }
    leave(entry)
    change(connection) { $0.isProven = true }
    newTicket(connection)
  }

  /// A request begins, or its answer has left.
  mutating func set(idle isIdle: Bool, _ connection: LibraryPointer) {
    guard let entry = entries[connection], entry.isIdle != isIdle else { return }
    change(connection) { $0.isIdle = isIdle }
    guard entry.isProven, !entry.isEnding else { return }
    newTicket(connection)
    if isIdle { idle.append(connection, lastTicket, livingMax: entries.count) { entries[$0]?.ticket == $1 } }
  }

  /// The connection gives way.
  mutating func end(_ connection: LibraryPointer) {
    guard let entry = entries[connection], !entry.isEnding else { return }
    leave(entry)
    change(connection) { $0.isEnding = true }
    newTicket(connection)
    endingCount += 1
  }

  /// Whether no other unproven connection has received more of its body, or as much and began earlier: one of those that
  /// fill their part goes on.
  func hasLargestBody(_ own: LibraryPointer) -> Bool {
    guard let body = entries[own]?.body else { return false }
    return !entries.contains { other, entry in
      guard other != own, !entry.isProven, let rival = entry.body else { return false }
      return (rival.bytes, body.began) > (body.bytes, rival.began)
    }
  }

  /// The unproven connection whose body came slowest, of those that began a second ago or earlier, but for one.
  func slowestBody(but own: LibraryPointer, now: Duration) -> LibraryPointer? {
    var slowest: (connection: LibraryPointer, rate: Double)?
    for (connection, entry) in entries where !entry.isProven && !entry.isEnding && connection != own {
      guard let body = entry.body, entry.deadline != nil, now - body.began >= .seconds(1) else { continue }
      let rate = Double(body.bytes) / ((now - body.began) / .seconds(1))
      if rate < slowest?.rate ?? .infinity { slowest = (connection, rate) }
    }
    return slowest?.connection
  }

  // MARK: Who gives way

  private mutating func victim(for new: LibraryPointer, _ entry: Entry) -> (LibraryPointer, CrowdedReason)? {
    guard openCount > connectionsMax || unprovenCount > unprovenMax else { return nil }
    if entry.isProven || unprovenCount <= unprovenMin, let found = firstIdle() { return (found, .idle) }
    let fair = unprovenCount / max(1, unprovenOfAddress.count)
    let ofAddress = entry.isProven ? 0 : unprovenOfAddress[entry.address]?.count ?? 0
    return (first(of: ofAddress > fair ? entry.address : nil, but: new) ?? new, .unproven)
  }

  /// The oldest unproven connection that does not wait for us.
  private mutating func first(of address: String?, but new: LibraryPointer? = nil) -> LibraryPointer? {
    let entries = entries
    let check = { (connection: LibraryPointer, ticket: UInt64) -> ConnectionLine.Place in
      guard let entry = entries[connection], entry.ticket == ticket else { return .gone }
      return entry.deadline == nil || connection == new ? .stays : .found
    }
    guard let address else { return unproven.first(check) }
    return unprovenOfAddress[address]?.line.first(check)
  }

  private mutating func firstIdle() -> LibraryPointer? {
    let entries = entries
    return idle.first { entries[$0]?.ticket == $1 ? .found : .gone }
  }

  // MARK: Lines

  private mutating func newTicket(_ connection: LibraryPointer) {
    lastTicket += 1
    let ticket = lastTicket
    change(connection) { $0.ticket = ticket }
  }

  private mutating func lineUp(_ connection: LibraryPointer, _ address: String) {
    let (ticket, entries) = (lastTicket, entries)
    let isLiving = { (connection: LibraryPointer, ticket: UInt64) in entries[connection]?.ticket == ticket }
    unprovenCount += 1
    unproven.append(connection, ticket, livingMax: unprovenCount, isLiving)
    var own = unprovenOfAddress[address] ?? (0, ConnectionLine())
    unprovenOfAddress[address] = nil  // so that the line is not copied
    own.count += 1
    own.line.append(connection, ticket, livingMax: own.count, isLiving)
    unprovenOfAddress[address] = own
  }

  /// It is no unproven connection any more.
  private mutating func leave(_ entry: Entry) {
    guard !entry.isProven, let count = unprovenOfAddress[entry.address]?.count else { return }
    unprovenCount -= 1
    if count == 1 {
      unprovenOfAddress[entry.address] = nil
    } else {
      unprovenOfAddress[entry.address]?.count = count - 1
    }
  }
}

/// Connections in the order in which they came. One that left stays until it is looked at, or until most of the line is of such.
struct ConnectionLine: Sendable {
  enum Place {
    /// It left the line.
    case gone
    /// It is in the line, and is not meant now.
    case stays
    case found
  }

  private var places: [(connection: LibraryPointer, ticket: UInt64)] = []
  private var begin = 0
  /// Places that are looked at in vain: each goes to the end of the line.
  private static let looksMax = 32

  /// - Parameter livingMax: there are at most as many that did not leave.
  mutating func append(
    _ connection: LibraryPointer, _ ticket: UInt64, livingMax: Int, _ isLiving: (LibraryPointer, UInt64) -> Bool
  ) {
    places.append((connection, ticket))
    guard places.count > 2 * livingMax + 64 else { return }
    places = places[begin...].filter { isLiving($0.connection, $0.ticket) }
    begin = 0
  }

  /// The first that is `found`; it leaves the line.
  mutating func first(_ check: (LibraryPointer, UInt64) -> Place) -> LibraryPointer? {
    var looks = 0
    while begin < places.count, looks < Self.looksMax {
      let (connection, ticket) = places[begin]
      begin += 1
      switch check(connection, ticket) {
      case .gone: continue
      case .found: return connection
      case .stays:
        places.append((connection, ticket))
        looks += 1
      }
    }
    return nil
  }
}

/// The connections of a server.
public struct ConnectionFigures: Sendable, Equatable {
  /// Open now: those whose sender is proven, and the others.
  public var proven = 0, unproven = 0
  /// Since the start: those that the server closed for others.
  public var closed: [CrowdedReason: Int] = [:]

  public init(proven: Int = 0, unproven: Int = 0, closed: [CrowdedReason: Int] = [:]) {
    (self.proven, self.unproven, self.closed) = (proven, unproven, closed)
  }
}

/// Why a connection was closed, since there were too many, or its body came too slowly.
public enum CrowdedReason: String, Sendable, CaseIterable {
  /// All places were taken: an idle connection gave way.
  case idle
  /// All places of connections without a proof were taken: one of them gave way.
  case unproven
  /// A body came too slowly.
  case slow
}
