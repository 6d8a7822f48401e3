import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import PrismSQL
import PrismSQLite
import Synchronization

/// Holds namespaces to the reports that they may have at rest, and devices to what they may send in a day (docs/collector.md,
/// "Quotas of namespaces" and "Devices").
///
/// A count is a fact of the store, which the transaction raises that stores a packet. So packets that are refused, repeated or
/// rolled back never count, and replicas share the count. That of a namespace is of all time: its reports at rest are
/// counted now and then, and the fact says how many came since. Until the first count nothing is refused. That of a device
/// is of one day of the store's service, so that no wall clock prolongs it; the next one begins at 0.
final class Quotas: Sendable {
  struct Figure: Sendable, Equatable {
    let namespace: String
    let rows, rowsMax: Int64
  }

  private struct Use {
    /// Reports at rest at the last count, less the rows that were ever taken then.
    var base: Int64 = 0
    /// As the store had it last.
    var taken: Int64 = 0
  }

  private enum FactColumn: String, SQLiteColumn {
    case name = "f.name"
    case value = "f.value"
  }

  /// A day is in the upper bits of its fact, and the count in the lower ones.
  static let countBits: Int64 = 48
  private static let countMask: Int64 = 1 << countBits - 1
  private static let daySeconds: Int64 = 86_400
  private static let namespaceFact = "quota "
  /// Senders choose names, so only the fullest are shown.
  private static let figuresMax = 200
  /// Of one transaction.
  private static let forgottenMax = 1000

  private let limits: CollectorConfiguration.Limits
  /// nil: reports were not counted yet.
  private let uses = Mutex<[String: Use]?>(nil)

  init(_ limits: CollectorConfiguration.Limits = .init()) { self.limits = limits }

  /// Whether a namespace has a quota.
  var countsReports: Bool { !limits.quotas.isEmpty }

  /// nil: it has no quota. The audit log is one, so that a full namespace hides no reader.
  func rowsMax(of namespace: String) -> Int64? {
    guard namespace != NamespaceName.audit.text else { return nil }
    return limits.quotas.first { Glob.matches($0.namespace, namespace) }.map { Int64($0.rowsMax) }
  }

  /// The fullest namespaces that have a quota, and those that it names.
  var figures: [Figure] {
    let named = limits.quotas.filter { !$0.namespace.contains { "*?".contains($0) } }.map { ($0.namespace, Use()) }
    let known = (uses.withLock { $0 } ?? [:]).merging(named) { known, _ in known }
    let figures = known.compactMap { name, use in
      rowsMax(of: name).map { Figure(namespace: name, rows: use.base + use.taken, rowsMax: $0) }
    }
    let fullest = figures.sorted { a, b in
      let (x, y) = (Double(a.rows) / Double(a.rowsMax), Double(b.rows) / Double(b.rowsMax))
      return x == y ? a.namespace < b.namespace : x > y
    }
    return Array(fullest.prefix(Self.figuresMax))
  }

  // MARK: A group of packets

  /// The room for a group, in the transaction that is to store it.
  func room(for submissions: [PacketSubmission], _ statements: SQLStatements) throws -> QuotaRoom {
    let names = Set(submissions.flatMap { Self.costs(of: $0.packet).map(\.fact) } + [ServiceTime.fact])
    let rows = try statements.rows(
      of: FactColumn.self, "FROM \(Self.members(statements)) j CROSS JOIN facts f WHERE f.name = j.key",
      [JSONValue.object(names.map { .init($0, .int(0)) }).text])
    let facts = Dictionary(uniqueKeysWithValues: rows.map { ($0.text(.name), $0.int64(.value)) })
    var room = QuotaRoom()
    for delivery in submissions.lazy.map(\.packet.delivery) { add(delivery, to: &room, facts) }
    return room
  }

  private func add(_ delivery: Delivery, to room: inout QuotaRoom, _ facts: [String: Int64]) {
    let (device, namespace) = (delivery.context.deviceID, delivery.context.namespace.text)
    let fact = Self.namespaceFact + namespace
    if delivery.context.kind.isReport, room.places[fact] == nil, let max = rowsMax(of: namespace) {
      let left = note(taken: facts[fact] ?? 0, of: namespace).map { max - $0 }
      let overdraft = Overdraft(name: namespace, limit: .reports, max: max, wait: .seconds(300))
      room.places[fact] = .init(overdraft: overdraft, day: 0, left: left)
    }
    guard delivery.isLimited, room.places[Self.facts(of: device)[0]] == nil else { return }
    // Each device has another time of day, so that they don't all come back at once.
    let seconds = (facts[ServiceTime.fact] ?? 0) + Int64(Checksum.of(Array(device.utf8))) % Self.daySeconds
    let (day, passed) = seconds.quotientAndRemainder(dividingBy: Self.daySeconds)
    let maxima: [(Overdraft.Limit, Int)] = [(.rows, limits.deviceRowsPerDay), (.bytes, limits.deviceBytesPerDay)]
    for (fact, (limit, max)) in zip(Self.facts(of: device), maxima) {
      let value = facts[fact] ?? 0
      let used = value >> Self.countBits == day ? value & Self.countMask : 0
      let overdraft = Overdraft(name: device, limit: limit, max: Int64(max), wait: .seconds(Self.daySeconds - passed))
      room.places[fact] = .init(overdraft: overdraft, day: day, left: Int64(max) - used)
    }
  }

  /// - Returns: its reports at rest; nil: they were not counted yet.
  private func note(taken: Int64, of namespace: String) -> Int64? {
    uses.withLock { uses in
      uses?[namespace, default: Use()].taken = taken
      return uses?[namespace].map { $0.base + taken }
    }
  }

  /// Of its rows and of its bytes.
  static func facts(of device: String) -> [String] { ["day rows \(device)", "day bytes \(device)"] }

  /// The amounts that a packet takes, by fact.
  fileprivate static func costs(of packet: OpenedPacket) -> [(fact: String, amount: Int)] {
    let context = packet.delivery.context
    let ofNamespace = context.kind.isReport ? [(namespaceFact + context.namespace.text, packet.rows.count)] : []
    guard packet.delivery.isLimited else { return ofNamespace }
    return ofNamespace + zip(facts(of: context.deviceID), [packet.rows.count, packet.unpackedBytes])
  }

  /// Counts what the transaction stores, also for readers: each packet corrects that. It is the transaction's last step, since
  /// replicas wait for each other here until the commit.
  func take(_ room: QuotaRoom, _ statements: SQLStatements) throws {
    let taken = room.places.filter { $0.value.taken > 0 }.sorted { $0.key < $1.key }
    guard !taken.isEmpty else { return }
    uses.withLock { uses in
      for (fact, place) in taken where fact.hasPrefix(Self.namespaceFact) {
        uses?[String(fact.dropFirst(Self.namespaceFact.count)), default: Use()].taken += place.taken
      }
    }
    let facts = taken.map { JSONValue.Member($0, .int(Int($1.day << Self.countBits | $1.taken))) }
    try statements.run(
      """
      INSERT INTO facts SELECT j.key, CAST(j.value AS bigint) FROM \(Self.members(statements)) j WHERE true
      ON CONFLICT (name) DO UPDATE SET value = CASE facts.value >> \(Self.countBits)
        WHEN excluded.value >> \(Self.countBits) THEN facts.value + (excluded.value & \(Self.countMask))
        ELSE excluded.value END
      """, [JSONValue.object(facts).text])
  }

  /// Deletes counts of days that are over, which no packet reads: senders choose the names of devices.
  /// - Parameter served: seconds of the store's service.
  /// - Returns: whether there may be more.
  static func forgetDays(served: Int64, _ statements: SQLStatements) throws -> Bool {
    // A packet that comes now may hold one of them, and wait for another.
    let lock = statements.driver.dialect == .sqlite ? "" : "FOR UPDATE SKIP LOCKED"
    let forgotten = try statements.run(
      """
      DELETE FROM facts WHERE name IN (SELECT name FROM facts WHERE name LIKE 'day %' AND value >> \(countBits) < $1
        LIMIT \(forgottenMax) \(lock)) RETURNING 1
      """, [served / daySeconds])
    return forgotten == forgottenMax
  }

  /// The members of an object, `$1`: any number of facts in one statement, in their order.
  private static func members(_ statements: SQLStatements) -> String {
    statements.driver.dialect == .sqlite ? "json_each($1)" : "json_each_text($1::json)"
  }

  // MARK: Counting what is at rest

  /// The rows that namespaces ever took.
  func taken(_ statements: SQLStatements) throws -> [String: Int64] {
    let rows = try statements.rows(of: FactColumn.self, "FROM facts f WHERE f.name LIKE '\(Self.namespaceFact)%'")
    return Dictionary(
      uniqueKeysWithValues: rows.map { (String($0.text(.name).dropFirst(Self.namespaceFact.count)), $0.int64(.value)) })
  }

  /// - Parameter atRest: the reports of all namespaces, as of `taken`.
  func note(atRest: [String: Int], taken: [String: Int64]) {
    uses.withLock { uses in
      let names = Set(atRest.keys).union(taken.keys).filter { rowsMax(of: $0) != nil }
      let known = uses ?? [:]
      uses = Dictionary(
        uniqueKeysWithValues: names.map { name in
          let before = taken[name] ?? 0
          return (name, Use(base: Int64(atRest[name] ?? 0) - before, taken: max(before, known[name]?.taken ?? 0)))
        })
    }
  }
}

/// The room that a group of packets finds, and what it takes of it.
struct QuotaRoom {
  struct Place {
    /// Why a packet is not taken when there is no room.
    let overdraft: Overdraft
    /// Of the count; 0: it is of all time.
    let day: Int64
    /// nil: it is not known yet.
    let left: Int64?
    var taken: Int64 = 0
  }

  /// By fact; others have room.
  var places: [String: Place] = [:]

  /// Why a packet finds no room. A packet that finds some is taken whole: it may pass the limit by this one.
  func overdraft(of packet: OpenedPacket) -> Overdraft? {
    Quotas.costs(of: packet).lazy.compactMap { places[$0.fact] }.first { ($0.left ?? .max) <= $0.taken }?.overdraft
  }

  mutating func take(_ packet: OpenedPacket) {
    for (fact, amount) in Quotas.costs(of: packet) { places[fact]?.taken += Int64(amount) }
  }
}

/// A limit of a namespace or a device that is used up.
struct Overdraft: Sendable, Equatable {
  /// A namespace's reports at rest; a device's rows and unpacked bytes of a day.
  enum Limit: Sendable { case reports, rows, bytes }

  /// Of the namespace, or the device.
  let name: String
  let limit: Limit
  let max: Int64
  /// Until a packet may be taken.
  var wait: Duration

  var refusal: CollectorRefusal {
    if limit == .reports {
      return CollectorRefusal(
        507,
        "the namespace \(name) has as many reports at rest as its quota of \(max) allows, or more; retention, an erasure or a "
          + "larger quota makes room", retryAfter: wait)
    }
    let most = limit == .rows ? "\(max) rows (deviceRowPerDay)" : "\(max >> 20) MiB unpacked (deviceMBytePerDay)"
    return CollectorRefusal(
      429, "the device sent the \(most) that it may in a day; the next one begins in \(wait.components.seconds) s",
      retryAfter: wait)
  }
}
