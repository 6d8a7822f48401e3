import PrismProtocol
import PrismStore

/// The rows that the store should hold: the simplest model that keeps the promises of docs/store.md, in memory.
struct ModelStore {
  struct Row {
    var id: RowID
    var number: Int
    var type: ReportType
    var arrived: Int64
    var size: Int
    /// With its user: equal ids of two users are two.
    var clientID: String?
    var user: UInt32
  }

  struct Packet {
    var id: PacketID
    var rows: [Row]
  }

  /// One namespace's rows of one kind.
  struct Queue {
    var ledger = Ledger()
    var waiting: [Row] = []
    var packets: [Packet] = []
    var dead: [Row] = []
    var lastAccepted: PacketID?
    var held: [Row] { waiting + packets.flatMap(\.rows) + dead }
    var bytes: Int { held.reduce(0) { $0 + $1.size } }
    var stored: [Row] { (waiting + packets.flatMap(\.rows)).sorted { $0.id < $1.id } }
  }

  /// A client's id, until 24 h after its report was delivered.
  struct KnownID {
    var row: RowID
    var delivered: Int64?
  }

  var queues: [NamespaceName: [RowKind: Queue]] = [:]
  var known: [NamespaceName: [String: KnownID]] = [:]
  var appVersions: [NamespaceName: String] = [:]

  subscript(namespace: NamespaceName, kind: RowKind) -> Queue {
    get { queues[namespace]?[kind] ?? Queue() }
    set { queues[namespace, default: [:]][kind] = newValue }
  }

  func holds(_ row: RowID, _ namespace: NamespaceName) -> Bool {
    RowKind.reports.contains { kind in self[namespace, kind].stored.contains { $0.id == row } }
  }
}

// MARK: Reports come
extension ModelStore {
  /// One report as it is handed in.
  struct Offer {
    var number: Int
    var type: ReportType
    var priority: Priority
    var payloadBytes: Int?
    var clientID: String?
    var user: UInt32
    var metaBytes: Int
    var arrived: Int64
  }

  enum Answer: Equatable { case stored, duplicate, full }

  /// - Parameter ids: as the store gave them out. The model does not choose them, but no id may come twice.
  /// - Parameter appVersion: the first report of a namespace is stored under it.
  mutating func append(
    _ offers: [Offer], ids: [RowID], to namespace: NamespaceName, quota: StoreQuota, appVersion: String?
  ) -> [Answer] {
    if queues[namespace] == nil {
      queues[namespace] = [:]
      appVersions[namespace] = appVersion
    }
    var (left, userLeft) = makeRoom(offers, namespace, quota)
    return zip(offers, ids).map { offer, id in
      if let known = offer.clientID.flatMap({ known[namespace]?[$0] }) { return known.row == id ? .duplicate : .full }
      let bytes = offer.metaBytes + (offer.payloadBytes.map { $0 + offer.metaBytes } ?? 0)
      guard bytes <= min(left, userLeft) else { return .full }
      (left, userLeft) = (left - bytes, userLeft - bytes)
      if let given = offer.clientID { known[namespace, default: [:]][given] = KnownID(row: id) }
      put(offer, id, offer.metaBytes, namespace, .meta)
      if let payload = offer.payloadBytes { put(offer, id, offer.metaBytes + payload, namespace, .payload) }
      return .stored
    }
  }

  private mutating func put(_ offer: Offer, _ id: RowID, _ size: Int, _ namespace: NamespaceName, _ kind: RowKind) {
    self[namespace, kind].waiting.append(
      Row(
        id: id, number: offer.number, type: offer.type, arrived: offer.arrived, size: size, clientID: offer.clientID,
        user: offer.user))
    self[namespace, kind].waiting.sort { $0.id < $1.id }
    self[namespace, kind].ledger.stored += 1
    self[namespace, kind].ledger[.waiting] += 1
  }

  private func held(_ namespace: NamespaceName) -> [UInt32: Int] {
    var held: [UInt32: Int] = [:]
    for row in RowKind.reports.flatMap({ self[namespace, $0].held }) { held[row.user, default: 0] += row.size }
    return held
  }

  /// - Returns: what the namespace and the user may hold beyond what they hold.
  private mutating func makeRoom(_ offers: [Offer], _ namespace: NamespaceName, _ quota: StoreQuota) -> (Int, Int) {
    let user = offers[0].user
    func left() -> (Int, Int) {
      let held = held(namespace)
      let userLeft = quota.userBytesMax == .max ? .max : quota.userBytesMax - held[user, default: 0]
      return (quota.bytesMax - held.values.reduce(0, +), userLeft)
    }
    let needed = offers.reduce(0) { $0 + $1.metaBytes + ($1.payloadBytes.map { $0 + 200 } ?? 0) }
    func fits() -> Bool { needed <= min(left().0, left().1) }
    guard quota.evictsOldest, !fits() else { return left() }
    let spare = min(quota.bytesMax, quota.userBytesMax) / 256
    _ = cut(needed + min(spare, 1 << 20), user, namespace, quota, [.rest, .realtime], stuck: [])
    if !fits() {
      var stuck: Set<UInt32> = []
      while true {
        let over = cut(needed, user, namespace, quota, [.rest, .realtime, .crash], stuck: stuck)
        if over.isEmpty { break }
        stuck.formUnion(over)
      }
    }
    return left()
  }

  /// Each user above the common level is cut to it, the oldest first; those who can't be are left out of the sum.
  /// - Returns: those who still hold too much.
  private mutating func cut(
    _ needed: Int, _ user: UInt32, _ namespace: NamespaceName, _ quota: StoreQuota, _ priorities: [Priority],
    stuck: Set<UInt32>
  ) -> [UInt32] {
    var wanted = held(namespace).filter { !stuck.contains($0.key) }
    wanted[user, default: 0] += needed
    wanted[user] = min(wanted[user]!, quota.userBytesMax)
    let fixed = held(namespace).filter { stuck.contains($0.key) }.values.reduce(0, +)
    let level = Self.level(Array(wanted.values), max(0, quota.bytesMax - fixed))
    func limit(_ owner: UInt32) -> Int {
      owner == user ? max(0, min(level, quota.userBytesMax) - needed) : level
    }
    for priority in priorities {
      let rows = RowKind.reports.flatMap { kind in self[namespace, kind].waiting.map { (kind, $0) } }
      for (kind, row) in rows.sorted(by: { ($0.1.id, $0.0 == .meta ? 0 : 1) < ($1.1.id, $1.0 == .meta ? 0 : 1) })
      where row.id.priority == priority && !stuck.contains(row.user) && held(namespace)[row.user]! > limit(row.user) {
        drop([row], namespace, kind, to: .evicted)
      }
    }
    return held(namespace).filter { !stuck.contains($0.key) && $0.value > limit($0.key) }.map(\.key)
  }

  /// The largest amount that, as everyone's bound, makes them fit.
  private static func level(_ wanted: [Int], _ bytesMax: Int) -> Int {
    if wanted.reduce(0, +) <= bytesMax { return .max }
    var (low, high) = (0, bytesMax + 1)
    while high - low > 1 {
      let middle = (low + high) / 2
      if wanted.reduce(0, { $0 + min($1, middle) }) <= bytesMax { low = middle } else { high = middle }
    }
    return low
  }
}

// MARK: Rows leave
extension ModelStore {
  mutating func drop(_ rows: [Row], _ namespace: NamespaceName, _ kind: RowKind, to account: Ledger.Account) {
    let ids = Set(rows.map(\.id.value))
    self[namespace, kind].waiting.removeAll { ids.contains($0.id.value) }
    self[namespace, kind].ledger.move(rows.count, from: .waiting, to: account)
    for row in rows { free(row, namespace, kind) }
  }

  /// Unless its payload, or the meta of one, is still held.
  private mutating func free(_ row: Row, _ namespace: NamespaceName, _ kind: RowKind) {
    let counterpart = self[namespace, kind == .meta ? .payload : .meta]
    if (counterpart.stored + counterpart.dead).contains(where: { $0.id == row.id }) { return }
    guard let id = row.clientID, let known = known[namespace]?[id], known.row == row.id, known.delivered == nil else {
      return
    }
    self.known[namespace]?[id] = nil
  }

  /// The rows that the claim takes.
  mutating func claim(
    _ id: PacketID, _ namespace: NamespaceName, _ kind: RowKind, items: Int, takes: (ReportType) -> Bool
  ) -> [Row] {
    let rows = Array(self[namespace, kind].waiting.filter { takes($0.type) }.prefix(items))
    guard !rows.isEmpty else { return [] }
    let ids = Set(rows.map(\.id.value))
    self[namespace, kind].waiting.removeAll { ids.contains($0.id.value) }
    self[namespace, kind].packets.append(Packet(id: id, rows: rows))
    self[namespace, kind].ledger.move(rows.count, from: .waiting, to: .claimed)
    return rows
  }

  mutating func settle(_ disposition: Disposition, _ namespace: NamespaceName, _ kind: RowKind) {
    var queue = self[namespace, kind]
    func index(_ id: PacketID) -> Int? { queue.packets.firstIndex { $0.id == id } }
    switch disposition {
    case .delivered(let id, let receipt):
      guard let index = index(id) else { return }
      let rows = queue.packets.remove(at: index).rows
      queue.ledger.move(rows.count, from: .claimed, to: .delivered)
      queue.lastAccepted = id
      for case let id? in rows.map(\.clientID) { known[namespace]?[id]?.delivered = receipt.unixMilliseconds }
    case .split(let id, let first, let second):
      guard let index = index(id), queue.packets[index].rows.count > 1 else { return }
      let rows = queue.packets[index].rows
      let half = (rows.count + 1) / 2
      queue.packets[index...index] = [
        Packet(id: first, rows: Array(rows[..<half])), Packet(id: second, rows: Array(rows[half...])),
      ]
    case .dead(let id, _):
      guard let index = index(id) else { return }
      let rows = queue.packets.remove(at: index).rows
      queue.dead += rows
      queue.ledger.move(rows.count, from: .claimed, to: .dead)
    case .released(let id), .setBack(let id):
      guard let index = index(id) else { return }
      let rows = queue.packets.remove(at: index).rows
      queue.waiting = (queue.waiting + rows).sorted { $0.id < $1.id }
      queue.ledger.move(rows.count, from: .claimed, to: .waiting)
    }
    self[namespace, kind] = queue
  }

  mutating func requeue(_ namespace: NamespaceName?) {
    forEachQueue(of: namespace) { queue in
      queue.waiting = (queue.waiting + queue.dead).sorted { $0.id < $1.id }
      queue.ledger.move(queue.dead.count, from: .dead, to: .waiting)
      queue.dead = []
    }
  }

  mutating func dropDead(_ namespace: NamespaceName?) {
    for name in queues.keys where namespace == nil || name == namespace {
      for kind in RowKind.reports { forget(self[name, kind].dead, name, kind, to: .removed) }
    }
  }

  private mutating func forget(
    _ rows: [Row], _ namespace: NamespaceName, _ kind: RowKind, to account: Ledger.Account
  ) {
    let ids = Set(rows.map(\.id.value))
    self[namespace, kind].dead.removeAll { ids.contains($0.id.value) }
    self[namespace, kind].ledger.move(rows.count, from: .dead, to: account)
    for row in rows { free(row, namespace, kind) }
  }

  private mutating func forEachQueue(of namespace: NamespaceName?, _ change: (inout Queue) -> Void) {
    for name in queues.keys where namespace == nil || name == namespace {
      for kind in RowKind.reports { change(&self[name, kind]) }
    }
  }

  mutating func remove(_ selection: RemovalSelection, _ namespace: NamespaceName, now: Int64) {
    func choose(_ rows: [Row]) -> [Row] {
      let ordered = rows.sorted { $0.id.sequence < $1.id.sequence }
      return switch selection {
      case .all: ordered
      case .oldest(let count): Array(ordered.prefix(count))
      case .latest(let count): Array(ordered.suffix(count))
      case .olderThan(let days): ordered.filter { $0.arrived < now - Int64(days) * 86_400_000 }
      case .report(let id):
        ordered.filter { $0.clientID?.hasSuffix("/\(id)") == true && known[namespace]?[$0.clientID!]?.row == $0.id }
      }
    }
    let metas = choose(self[namespace, .meta].waiting)
    let ids = Set(metas.map(\.id.value))
    let twins = self[namespace, .payload].waiting.filter { ids.contains($0.id.value) }
    drop(metas, namespace, .meta, to: .removed)
    drop(metas.isEmpty ? choose(self[namespace, .payload].waiting) : twins, namespace, .payload, to: .removed)
  }

  /// The final effects of `maintain`: expiry, and forgetting ids a day after their delivery.
  mutating func maintain(expirationDays: [NamespaceName: Int], now: Int64) {
    for (namespace, days) in expirationDays {
      let cutoff = now - Int64(days) * 86_400_000
      for kind in RowKind.reports {
        forget(self[namespace, kind].dead.filter { $0.arrived < cutoff }, namespace, kind, to: .expired)
        drop(self[namespace, kind].waiting.filter { $0.arrived < cutoff }, namespace, kind, to: .expired)
      }
    }
    for namespace in known.keys {
      known[namespace] = known[namespace]?.filter { _, entry in
        guard let delivered = entry.delivered, delivered < now - 86_400_000 else { return true }
        return holds(entry.row, namespace)
      }
    }
  }

  /// Another version of the app clears what waits, where the configuration says so.
  mutating func apply(appVersion: String, isUpdateClear: Bool, _ namespace: NamespaceName) {
    guard queues[namespace] != nil else { return }
    let before = appVersions.updateValue(appVersion, forKey: namespace)
    guard let before, before != appVersion, isUpdateClear else { return }
    for kind in RowKind.reports { drop(self[namespace, kind].waiting, namespace, kind, to: .cleared) }
  }
}
