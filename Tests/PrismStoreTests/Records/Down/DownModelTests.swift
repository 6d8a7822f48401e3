import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// Random histories of a device, a server that changes records too, and a network that loses answers.
@Suite("Random histories of records that both sides change") struct DownModelTests {
  @Test("after any history the ledgers balance after each step, and both sides are equal once quiet")
  func histories() async throws {
    let seed = SeededRandom.announcedSeed("DownModelTests")
    for history in 0..<(16 * UInt64(soakFactor)) {
      var model = try await DownModel(seed: seed &+ history)
      for step in 0..<100 {
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
struct DownModel {
  private static let ids = ["a", "b", "c", "d"]

  var rig: DownRig
  private var random: SeededRandom
  private var server: DownServer
  /// An answer that is still on its way: it may come late, twice, or never.
  private var late: (table: RecordTableName, after: Int64?, lines: [DownLine])?
  /// Up to this number a table has executed all that the server did.
  private var through: [RecordTableName: Int64] = [:]
  private var problem: String?

  init(seed: UInt64) async throws {
    random = SeededRandom(seed: seed)
    rig = try await DownRig(onConflict: random.pick([.newest, .local, .remote]))
    server = DownServer(rig.tables)
  }

  // MARK: Steps

  mutating func step() async throws {
    server.now += 1000
    rig.records.rig.time.advance(by: .seconds(1))
    switch random.next() % 16 {
    case 0...3: await changeHere()
    case 4...7: changeThere()
    case 8...10: try await ask(random.pick(rig.tables))
    case 11: try await rig.records.restart(isKill: random.oneIn(2))
    case 12: try await repeatLate()
    case 13: _ = try await rig.records.claim(items: 3, tables: rig.tables)
    case 14 where random.oneIn(2):
      rig.records.rig.time.stepWallClock(milliseconds: Int64(random.next() % 7_200_000) - 3_600_000)
    case 15 where random.oneIn(3): server.forget(upTo: server.sequence - Int64(random.next() % 5))
    default: try await send()
    }
  }

  private mutating func changeHere() async {
    let table = random.pick(rig.tables.filter { $0.direction == .both })
    let id = random.pick(Self.ids)
    if random.oneIn(4) { return await rig.delete(table.name.text, id) }
    var members: [JSONValue.Member] = [.init("n", .int(Int(random.next() % 4)))]
    if table.references["setting"] != nil, random.oneIn(2) {
      members.append(.init("setting", .string(random.pick(Self.ids))))
    }
    _ = await rig.put(table.name.text, id, .object(members))
  }

  private mutating func changeThere() {
    let table = random.pick(rig.tables)
    let known = (server.rows[table.name] ?? [:]).keys.sorted()
    let id = known.isEmpty || random.oneIn(3) ? RecordID("w\(random.next() % 4)")! : random.pick(known)
    if random.oneIn(4) { return server.delete(table.name, id) }
    var members: [JSONValue.Member] = [.init("n", .int(Int(random.next() % 4)))]
    for (field, target) in table.references {
      if let other = (server.rows[target] ?? [:]).keys.sorted().randomElement(using: &random) {
        members.append(.init(field, .string(other.text)))
      }
    }
    server.put(table.name, id, .object(members))
  }

  /// A question, with a random end.
  private mutating func ask(_ table: RecordTable, isQuiet: Bool = false) async throws {
    let after = await rig.after(table.name.text)
    let lines = server.answer(table.name, after: after, isWhole: !isQuiet && random.oneIn(6))
    late = (table.name, after, lines)
    if isQuiet || !random.oneIn(4) { try await take(table.name, after, lines) }
  }

  private mutating func repeatLate() async throws {
    if let late { try await take(late.table, late.after, late.lines) }
  }

  private mutating func take(_ table: RecordTableName, _ after: Int64?, _ lines: [DownLine]) async throws {
    let ahead = rig.records.rig.time.unixMilliseconds - server.now
    rig.clockAhead = abs(ahead) >= 60_000 ? ahead : 0
    var reading = DownReading(table: table, after: after)
    var (operations, records): ([DownOperation], [DownRecord]) = ([], [])
    for line in lines {
      switch try reading.read(line.bytes) {
      case .operation(let operation): operations.append(operation)
      case .record(let record): records.append(record)
      case .head: break
      }
    }
    let sequence = try reading.finish()
    guard reading.head?.isFull == true else {
      var others = Int64.max
      for other in rig.tables where other.name != table {
        others = min(others, max(await rig.after(other.name.text) ?? 0, through[other.name] ?? 0))
      }
      let outcome = try await rig.apply(table.text, operations, to: sequence, after: after, othersThrough: others)
      if case .waits(let number) = outcome.end { through[table] = number - 1 }
      return
    }
    // A whole table that comes late would take the table back: a device takes the answer to its last question only.
    guard after == (await rig.after(table.text)), late?.lines == lines else { return }
    if random.oneIn(5) {
      // The device dies while the table comes.
      let content = try await rig.store.beginTable(rig.target(table.text))
      _ = try await rig.store.add(records, sequence: sequence, to: content)
      return try await rig.records.restart(isKill: true)
    }
    try await rig.take(table.text, records, sequence: sequence, step: 2)
    late = nil
  }

  /// Sends the first packet in flight, with a random end.
  private mutating func send(isQuiet: Bool = false) async throws {
    guard let first = try await rig.store.inFlight(Rig.shop, .records).first,
      let packet = try await rig.store.read(first.id)
    else {
      _ = try await rig.records.claim(items: 3, tables: rig.tables)
      return
    }
    server.take(packet)
    if isQuiet || !random.oneIn(3) { try await rig.records.deliver(packet.id, server.answers[packet.id]!) }
  }

  /// All answers come, until nothing is new on either side.
  mutating func becomeQuiet() async throws {
    for _ in 0..<60 {
      while try await !rig.store.inFlight(Rig.shop, .records).isEmpty { try await send(isQuiet: true) }
      for table in rig.tables { try await ask(table, isQuiet: true) }
      var isDone = try await rig.records.claim(items: 3, tables: rig.tables) == nil
      for table in rig.tables where await rig.after(table.name.text) != server.sequence { isDone = false }
      if isDone { return }
    }
    problem = "it never becomes quiet"
  }

  // MARK: Invariants

  /// nil: what must hold holds.
  func fault() async -> String? {
    for table in await rig.store.records.tables(of: Rig.shop) where !table.ledger.isBalanced {
      return "the ledger of \(table.name) is not balanced"
    }
    return problem
  }

  /// nil: both sides hold the same records.
  func difference() async throws -> String? {
    if let problem { return problem }
    for table in rig.tables {
      let name = table.name.text
      var here: [RecordID: StoredRecord] = [:]
      for id in await rig.ids(name) {
        guard let record = await rig.record(name, id) else { return "\(name)/\(id) is listed and not there" }
        guard let serverID = record.serverID, record.state == .clean else { return "\(name)/\(id) is \(record.state)" }
        guard here.updateValue(record, forKey: serverID) == nil else { return "\(name)/\(serverID) is there twice" }
      }
      let there = server.rows[table.name] ?? [:]
      if Set(here.keys) != Set(there.keys) {
        return "\(name) has \(here.keys.sorted()) here and \(there.keys.sorted()) there"
      }
      for (id, record) in here {
        let fields = try JSONValue(parsing: record.fields)
        guard fields["n"] == there[id]!.fields["n"], fields.object?.count == there[id]!.fields.object?.count else {
          return "\(name)/\(id) is \(fields.text) here and \(there[id]!.fields.text) there"
        }
      }
    }
    return nil
  }
}
