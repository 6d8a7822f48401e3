import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// Random histories of a device, a server that changes records too, and a network that loses answers.
@Suite("Random histories of records that both sides change") struct DownModelTests {
  @Test("after any history the ledgers balance after each step, and both sides are equal once quiet")
  func histories() async throws {
    try await run { DownServer($0) }
  }

  @Test("and so it is with the collector's own store at the other end")
  func collector() async throws {
    try await run { try CollectorHistory($0) }
  }

  @Test("and so it is with a server whose operations wait for those of other tables")
  func entangled() async throws {
    try await run { DownServer($0, isEntangled: true) }
  }

  /// In this history a record is deleted and comes back, while another table refers to it already.
  @Test("histories that once failed", arguments: [14_144_705_020_336_828_043 as UInt64])
  func failed(seed: UInt64) async throws {
    try await run(seeds: seed...seed) { DownServer($0) }
  }

  private func run<Server: HistoryServer>(_ server: ([RecordTable]) throws -> Server) async throws {
    let seed = SeededRandom.announcedSeed("DownModelTests")
    let first = min(seed, .max - 16 * UInt64(soakFactor))
    try await run(seeds: first...(first + 16 * UInt64(soakFactor) - 1), server)
  }

  private func run<Server: HistoryServer>(
    seeds: ClosedRange<UInt64>, _ server: ([RecordTable]) throws -> Server
  ) async throws {
    for seed in seeds {
      var model = try await DownModel(seed: seed, server)
      for step in 0..<100 {
        try await model.step()
        let fault = await model.fault()
        #expect(fault == nil, "seed \(seed), step \(step)")
        if fault != nil { return }
      }
      try await model.becomeQuiet()
      let difference = try await model.difference()
      #expect(difference == nil, "seed \(seed), once quiet")
      if difference != nil { return }
      await model.close()
    }
  }
}

/// One history.
struct DownModel<Server: HistoryServer> {
  private static var ids: [String] { ["a", "b", "c", "d"] }

  var rig: DownRig
  private var random: SeededRandom
  private var server: Server
  private let declared: [RecordTable]
  /// An answer that is still on its way: it may come late, twice, or never.
  private var late: (table: RecordTableName, after: Int64?, settled: Int, lines: [DownLine])?
  /// Up to this number a table has executed all that the server did.
  private var through: [RecordTableName: Int64] = [:]
  /// Changes that were made here when all of the server's were known, and that the server did not touch since: the number in
  /// the record, or nil for a deletion. They hold, by any clock.
  private var certain: [RecordTableName: [String: Int?]] = [:]
  private var problem: String?

  init(seed: UInt64, _ server: ([RecordTable]) throws -> Server) async throws {
    random = SeededRandom(seed: seed)
    rig = try await DownRig(onConflict: random.pick([.newest, .local, .remote]))
    declared = rig.tables
    self.server = try server(declared)
  }

  func close() async {
    await rig.store.close()
    await server.close()
  }

  // MARK: Steps

  mutating func step() async throws {
    server.advance()
    rig.records.rig.time.advance(by: .seconds(1))
    switch random.next() % 18 {
    case 0...3: try await changeHere()
    case 4...7: try await changeThere()
    case 8...10: try await ask(random.pick(rig.tables))
    case 11: try await rig.records.restart(isKill: random.oneIn(2))
    case 12: try await repeatLate()
    case 13: _ = try await rig.records.claim(items: 3, tables: rig.tables)
    case 14 where random.oneIn(2):
      rig.records.rig.time.stepWallClock(milliseconds: Int64(random.next() % 7_200_000) - 3_600_000)
    case 15 where random.oneIn(3): try await server.forget(allBut: Int64(random.next() % 5))
    case 16 where random.oneIn(3): try await server.restart()
    case 17 where random.oneIn(2): reload()
    default: try await send()
    }
  }

  /// Another rule for conflicts, and a table that is not declared for a while.
  private mutating func reload() {
    rig.tables = declared
    let rule: RecordConflict = random.pick([.newest, .local, .remote])
    for index in rig.tables.indices { rig.tables[index].onConflict = rule }
    let away = random.pick(["knob", "bundle", ""])
    rig.tables.removeAll { $0.name.text == away }
  }

  private mutating func changeHere() async throws {
    let table = random.pick(rig.tables.filter { $0.direction == .both })
    let id = random.pick(Self.ids)
    let knowsAll = try await knowsAll()
    certain[table.name]?[id] = nil
    if random.oneIn(4) {
      await rig.delete(table.name.text, id)
      if knowsAll { certain[table.name, default: [:]][id] = .some(nil) }
      return
    }
    let number = Int(random.next() % 4)
    var members: [JSONValue.Member] = [.init("n", .int(number))]
    if table.references["setting"] != nil, random.oneIn(2) {
      members.append(.init("setting", .string(random.pick(Self.ids))))
    }
    let (fields, isPatch) = (JSONValue.object(members), random.oneIn(3))
    let action: RecordRequest.Action = isPatch ? .patch(RecordID(id)!, fields) : .put(RecordID(id)!, fields)
    guard case .stored? = await rig.records.ask(table, action)?.answer, knowsAll else { return }
    certain[table.name, default: [:]][id] = number
  }

  /// A change of one table may take records of another with it.
  private func knowsAll() async throws -> Bool {
    let newest = try await server.sequence
    for table in declared {
      guard await rig.store.records.standing(of: table.name, in: Rig.shop)?.after == newest else { return false }
    }
    return true
  }

  private mutating func changeThere() async throws {
    let table = random.pick(rig.tables)
    certain[table.name] = nil
    let known = try await server.rows(of: table.name).keys.sorted()
    let id = known.isEmpty || random.oneIn(3) ? random.pick(server.names) : random.pick(known)
    if random.oneIn(4) {
      certain = [:]  // with what refers to it
      return try await server.delete(table.name, id)
    }
    var members: [JSONValue.Member] = [.init("n", .int(Int(random.next() % 4)))]
    for (field, target) in table.references {
      if let other = try await server.rows(of: target).keys.sorted().randomElement(using: &random) {
        members.append(.init(field, .string(other.text)))
      }
    }
    try await server.put(table.name, id, .object(members))
  }

  /// A question, with a random end.
  private mutating func ask(_ table: RecordTable, isQuiet: Bool = false) async throws {
    let after = await rig.after(table.name.text)
    rig.settled = await rig.store.records.settled(table.name, in: Rig.shop)
    let lines = try await server.answer(table.name, after: after, isWhole: !isQuiet && random.oneIn(6))
    late = (table.name, after, rig.settled!, lines)
    if isQuiet || !random.oneIn(4) { try await take(table.name, after, lines) }
    rig.settled = nil
  }

  private mutating func repeatLate() async throws {
    guard let late, rig.tables.contains(where: { $0.name == late.table }) else { return }
    rig.settled = late.settled
    try await take(late.table, late.after, late.lines)
    rig.settled = nil
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
    let receipt = try await server.take(packet, sentTime: rig.records.rig.time.unixMilliseconds)
    if isQuiet || !random.oneIn(3) { try await rig.records.deliver(packet.id, receipt) }
  }

  /// All answers come, until nothing is new on either side.
  mutating func becomeQuiet() async throws {
    rig.tables = declared
    for _ in 0..<60 {
      while try await !rig.store.inFlight(Rig.shop, .records).isEmpty { try await send(isQuiet: true) }
      for table in rig.tables { try await ask(table, isQuiet: true) }
      var isDone = try await rig.records.claim(items: 3, tables: rig.tables) == nil
      let newest = try await server.sequence
      for table in rig.tables where await rig.after(table.name.text) != newest { isDone = false }
      if isDone { return }
    }
    problem = "it never becomes quiet: \(await rig.store.records.tables(of: Rig.shop))"
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
      let there = try await server.rows(of: table.name)
      if Set(here.keys) != Set(there.keys) {
        return "\(name) has \(here.keys.sorted()) here and \(there.keys.sorted()) there"
      }
      for (id, record) in here {
        let fields = try JSONValue(parsing: record.fields)
        guard fields["n"] == there[id]!["n"], fields.object?.count == there[id]!.object?.count else {
          return "\(name)/\(id) is \(fields.text) here and \(there[id]!.text) there"
        }
      }
      for (id, number) in certain[table.name] ?? [:] {
        let found = await rig.record(name, id).flatMap { try? JSONValue(parsing: $0.fields)["n"]?.int }
        guard found == number else { return "\(name)/\(id) has lost the change to \(number ?? -1)" }
      }
    }
    return nil
  }
}
