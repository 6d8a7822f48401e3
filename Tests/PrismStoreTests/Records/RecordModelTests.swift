import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// Random histories of a device's records, its store and a server, held to what docs/records.md promises.
@Suite("Random histories of records") struct RecordModelTests {
  @Test("after any history the ledgers balance after each step, and both sides are equal once quiet")
  func histories() async throws {
    let seed = SeededRandom.announcedSeed("RecordModelTests")
    for history in 0..<(20 * UInt64(soakFactor)) {
      var model = try await RecordModel(seed: seed &+ history)
      for step in 0..<120 {
        try await model.step()
        let fault = await model.fault()
        #expect(fault == nil, "seed \(seed &+ history), step \(step)")
        if fault != nil { return }
      }
      try await model.becomeQuiet()
      let difference = try await model.difference()
      #expect(difference == nil, "seed \(seed &+ history), once quiet")
      if difference != nil { return }
      await model.rig.store.close()
    }
  }
}

/// One history.
struct RecordModel {
  private static let ids = ["a", "b", "c", "d", "e"]

  var rig: RecordRig
  private var random: SeededRandom
  private var server = RecordServer()
  /// The last answers to programs: the fields of each record by table.
  private var expected: [RecordTableName: [RecordID: JSONValue]] = [:]
  /// Packets that left or may have, with their plaintext.
  private var sent: [PacketID: [UInt8]] = [:]
  private var problems: [String] = []

  init(seed: UInt64) async throws {
    rig = try await RecordRig()
    random = SeededRandom(seed: seed)
  }

  // MARK: Steps

  mutating func step() async throws {
    switch random.next() % 12 {
    case 0...4: await change()
    case 5: await delete()
    case 6: try await restart()
    case 7: try await claim()
    default: try await attempt()
    }
  }

  private mutating func change() async {
    let table = random.pick(RecordRig.tables)
    let id = RecordID(random.pick(Self.ids))!
    var members: [JSONValue.Member] = [.init("n", .int(Int(random.next() % 3)))]
    for field in table.references.keys.sorted() where random.oneIn(2) {
      members.append(.init(field, .string(random.pick(Self.ids))))
    }
    let isPatch = random.oneIn(3)
    let fields = JSONValue.object(members)
    guard let outcome = await rig.ask(table, isPatch ? .patch(id, fields) : .put(id, fields)) else {
      return problems.append("the store failed")
    }
    guard case .stored = outcome.answer else { return }
    let before = expected[table.name]?[id] ?? .object([])
    expected[table.name, default: [:]][id] = isPatch ? before.merged(with: fields) : fields
  }

  private mutating func delete() async {
    let table = random.pick(RecordRig.tables)
    let id = RecordID(random.pick(Self.ids))!
    _ = await rig.ask(table, .delete(id))
    expected[table.name]?[id] = nil
  }

  /// A kill, or an end in order.
  private mutating func restart() async throws {
    try await rig.restart(isKill: random.oneIn(2))
  }

  private mutating func claim() async throws {
    _ = try await rig.claim(items: 1 + Int(random.next() % 4))
  }

  /// Sends the first packet in flight, with a random end.
  private mutating func attempt() async throws {
    guard let first = try await rig.store.inFlight(Rig.shop, .records).first,
      let packet = try await rig.store.read(first.id)
    else { return try await claim() }
    if let before = sent[packet.id], before != packet.metas { problems.append("a packet changed between two attempts") }
    switch random.next() % 8 {
    case 0 where sent[packet.id] == nil: try await rig.settle(.released(packet.id))
    case 1:
      sent[packet.id] = packet.metas
      problems += server.take(packet)
    case 2 where packet.itemCount > 1 && server.answers[packet.id] == nil:
      try await rig.settle(.split(packet.id, first: rig.rig.packetID(), second: rig.rig.packetID()))
    case 3 where packet.itemCount == 1 && server.answers[packet.id] == nil:
      server.lost(packet.operations[0])
      let cause = Disposition.DeadCause(status: 400, message: "no", unixMilliseconds: 1, attempts: 1)
      try await rig.settle(.dead(packet.id, cause: cause))
    case 4 where server.answers[packet.id] == nil:
      server.refuses = random.pick(packet.operations).op
      try await deliver(packet)
    default: try await deliver(packet)
    }
  }

  private mutating func deliver(_ packet: ClaimedPacket) async throws {
    sent[packet.id] = packet.metas
    problems += server.take(packet)
    try await rig.deliver(packet.id, server.answers[packet.id] ?? RecordReceipt())
  }

  /// All answers come, until nothing waits.
  mutating func becomeQuiet() async throws {
    for _ in 0..<200 {
      while let first = try await rig.store.inFlight(Rig.shop, .records).first,
        let packet = try await rig.store.read(first.id)
      {
        try await deliver(packet)
      }
      guard try await rig.claim(items: 3) != nil else { return }
    }
    problems.append("it never becomes quiet")
  }

  // MARK: Invariants

  /// nil: what must hold holds.
  func fault() async -> String? {
    if let problem = problems.first { return problem }
    for table in await rig.store.records.tables(of: Rig.shop) where !table.ledger.isBalanced {
      return "the ledger of \(table.name) is not balanced"
    }
    for table in RecordRig.tables {
      for id in Self.ids {
        let (stored, wanted) = (await rig.record(table, id), expected[table.name]?[RecordID(id)!])
        guard let stored, let wanted else {
          if stored != nil || wanted != nil {
            return
              "\(table.name)/\(id) is \(stored.map { "there: \($0)" } ?? "missing"), wanted: \(wanted?.text ?? "no")"
          }
          continue
        }
        if try! JSONValue(parsing: stored.fields).says(the: wanted) { continue }
        return "\(table.name)/\(id) has other fields than were put"
      }
    }
    return nil
  }

  /// nil: both sides hold the same records, but for those that the server refused.
  func difference() async throws -> String? {
    if let problem = problems.first { return problem }
    for status in await rig.store.records.tables(of: Rig.shop)
    where status.ledger[.waiting] + status.ledger[.claimed] > 0 {
      return "changes of \(status.name) wait for ever"
    }
    for table in RecordRig.tables {
      for id in Self.ids {
        let here = await rig.record(table, id)
        let there = server.records[table.name]?[RecordID(id)!]
        if here?.refusal != nil || server.keeps.contains("\(table.name)/\(id)") { continue }
        guard let here, let there else {
          if here != nil || there != nil { return "\(table.name)/\(id) is on one side only" }
          continue
        }
        guard here.serverID == there.id, here.state == .clean else { return "\(table.name)/\(id) is not known" }
        let fields = try JSONValue(parsing: here.fields)
        guard fields["n"] == there.fields["n"], fields.object?.count == there.fields.object?.count else {
          return "\(table.name)/\(id) differs"
        }
      }
    }
    return nil
  }
}

/// The server of a history: it carries operations out, gives ids, and answers a packet that comes again as before.
struct RecordServer {
  struct Record {
    var id: RecordID
    var fields: JSONValue
  }

  private(set) var records: [RecordTableName: [RecordID: Record]] = [:]
  private(set) var answers: [PacketID: RecordReceipt] = [:]
  /// The `op` to refuse.
  var refuses: String?
  /// Records of which a deletion was refused.
  private(set) var keeps: Set<String> = []
  private var lastID = 0
  /// Ids that it gave at any time.
  private var given: Set<String> = []
  /// Every `op` that came.
  private var operations: Set<String> = []

  /// The packet of this operation alone is refused.
  mutating func lost(_ operation: RecordOperation) {
    if operation.kind == .delete { keeps.insert("\(operation.table)/\(operation.id)") }
  }

  /// - Returns: what the sender did wrong.
  mutating func take(_ packet: ClaimedPacket) -> [String] {
    if answers[packet.id] != nil { return [] }
    var (receipt, problems): (RecordReceipt, [String]) = (RecordReceipt(), [])
    if packet.operations.map(\.kind.rawValue) != packet.operations.map(\.kind.rawValue).sorted() {
      problems.append("inserts, updates and deletes are not in this order")
    }
    for operation in packet.operations {
      if !operations.insert(operation.op).inserted { problems.append("\(operation.op) came in two packets") }
      if operation.op == refuses {
        refuses = nil
        receipt.refused.append(.init(op: operation.op, message: "refused"))
        if operation.kind == .delete { keeps.insert("\(operation.table)/\(operation.id)") }
      } else if let problem = apply(operation, &receipt) {
        problems.append(problem)
      }
    }
    answers[packet.id] = receipt
    return problems
  }

  private mutating func apply(_ operation: RecordOperation, _ receipt: inout RecordReceipt) -> String? {
    let known = records[operation.table]?[operation.id]
    switch operation.kind {
    case .insert:
      if known != nil, !keeps.contains("\(operation.table)/\(operation.id)") {
        return "\(operation.table)/\(operation.id) is inserted twice"
      }
      lastID += 1
      let id = RecordID("S\(lastID)")!
      given.insert(id.text)
      records[operation.table, default: [:]][operation.id] = Record(id: id, fields: operation.fields ?? .null)
      receipt.ids[operation.table, default: [:]][operation.id] = id
    case .update:
      guard let known else { return "\(operation.table)/\(operation.id) is updated before it is inserted" }
      if known.id != operation.serverID { return "\(operation.table)/\(operation.id) comes under another id" }
      records[operation.table]?[operation.id]?.fields = operation.fields ?? .null
    case .delete:
      if known == nil { return "\(operation.table)/\(operation.id) is deleted before it is inserted" }
      records[operation.table]?[operation.id] = nil
      keeps.remove("\(operation.table)/\(operation.id)")
    }
    return nil
  }
}
