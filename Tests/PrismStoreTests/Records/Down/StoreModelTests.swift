import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// Random histories of a device whose server's store is replaced, restored from a backup, or exchanged for a while.
@Suite("Random histories of stores") struct StoreModelTests {
  @Test("no record leaves the device without a deletion, and once quiet its store has all of them")
  func histories() async throws {
    let seed = min(SeededRandom.announcedSeed("StoreModelTests"), .max - 12 * UInt64(soakFactor))
    for seed in seed..<(seed + 12 * UInt64(soakFactor)) {
      var model = try await StoreModel(seed: seed)
      for step in 0..<120 {
        try await model.step()
        let lost = await model.lost()
        #expect(lost == nil, "seed \(seed), step \(step)")
        if lost != nil { return }
      }
      let difference = try await model.quietDifference()
      #expect(difference == nil, "seed \(seed), once quiet")
      if difference != nil { return }
      await model.rig.store.close()
    }
  }
}

/// One history.
struct StoreModel {
  private static let part = RecordTable(RecordTableName("part")!)
  private static let (price, setting) = (DownRig.price, DownRig.setting)
  private static let ids = ["a", "b", "c", "d"]

  private(set) var rig: DownRig
  private var random: SeededRandom
  /// By their identities; the one that answers now is `current`.
  private var servers: [Int64: DownServer] = [:]
  private var current: Int64 = 1
  private var backups: [(id: Int64, server: DownServer)] = []
  /// Records that programs or the server deleted: they may be gone.
  private var deleted: Set<String> = []
  /// Records that were ever on the device.
  private var seen: Set<String> = []

  init(seed: UInt64) async throws {
    random = SeededRandom(seed: seed)
    rig = try await DownRig(onConflict: random.pick([.newest, .local, .remote]))
    rig.tables = [Self.price, rig["setting"], Self.part]
    servers[1] = DownServer(rig.tables)
  }

  // MARK: Steps

  mutating func step() async throws {
    for id in servers.keys { servers[id]!.advance() }
    rig.records.rig.time.advance(by: .seconds(1))
    switch random.next() % 20 {
    case 0...4: try await changeHere()
    case 5...7: await changeThere()
    case 8...11: try await ask(random.pick([Self.price, rig["setting"]]))
    case 12: try await rig.records.restart(isKill: random.oneIn(2))
    case 13: backups.append((current, servers[current]!))
    case 14 where random.oneIn(3): try await restore()
    case 15 where random.oneIn(2): exchange()
    default: try await send()
    }
  }

  private mutating func restore() async throws {
    guard let backup = backups.randomElement(using: &random) else { return }
    servers[backup.id] = backup.server
    current = backup.id
  }

  /// A new store, or one of those that there are.
  private mutating func exchange() {
    if servers.count > 1, random.oneIn(2) {
      current = servers.keys.sorted().randomElement(using: &random)!
      return
    }
    current = Int64(servers.count + 1)
    servers[current] = DownServer(rig.tables)
  }

  private mutating func changeHere() async throws {
    let (table, id) = (random.pick([rig["setting"], Self.part]), random.pick(Self.ids))
    if random.oneIn(6) {
      deleted.insert("\(table.name)/\(id)")
      return await rig.delete(table.name.text, id)
    }
    guard case .stored? = await rig.put(table.name.text, id, ["n": .int(Int(random.next() % 50))]) else { return }
    deleted.remove("\(table.name)/\(id)")
  }

  /// No device sees that a store was restored once it has given numbers up to those that the device knows.
  private mutating func changeThere() async {
    for table in [Self.price, rig["setting"]] {
      guard await rig.after(table.name.text) ?? 0 <= servers[current]!.sequence else { return }
    }
    let (table, id) = (random.pick([Self.price, rig["setting"]]), random.pick(servers[current]!.names))
    if random.oneIn(5) {
      deleted.insert("\(table.name)/\(id)")
      return servers[current]!.delete(table.name, id)
    }
    servers[current]!.put(table.name, id, ["n": .int(Int(random.next() % 50))])
  }

  private mutating func ask(_ table: RecordTable) async throws {
    guard try await rig.store.inFlight(Rig.shop, .records).isEmpty else { return }
    let after = await rig.after(table.name.text)
    let lines = servers[current]!.answer(table.name, after: after, isWhole: random.oneIn(6))
    guard case .head(let head)? = lines.first else { return }
    let knowsLess = after.map { head.isFull && head.sequence < $0 } ?? false
    rig.mark = StoreMark(id: current)
    let last = try await rig.store.lastAccepted(Rig.shop, .records)
    let missing = last.flatMap { servers[current]!.hasTaken($0) ? nil : $0 }
    if try await rig.recognize(rig.mark!, knowsLess: knowsLess, missing: missing) != .same {
      return try await rig.markAll()
    }
    if head.isFull {
      let records = lines.dropFirst().compactMap { if case .record(let record) = $0 { record } else { nil } }
      try await rig.take(table.name.text, records, sequence: head.sequence)
    } else {
      let operations = lines.dropFirst().compactMap { if case .operation(let one) = $0 { one } else { nil } }
      _ = try await rig.apply(table.name.text, operations, to: head.sequence, after: after)
    }
  }

  private mutating func send() async throws {
    guard let first = try await rig.store.inFlight(Rig.shop, .records).first,
      let packet = try await rig.store.read(first.id)
    else {
      _ = try await rig.records.claim(items: 3, tables: rig.tables)
      return
    }
    let last = try await rig.store.lastAccepted(Rig.shop, .records)
    let isBroken = last.map { !servers[current]!.hasTaken($0) } ?? false
    var receipt = servers[current]!.take(packet, sentTime: rig.records.rig.time.unixMilliseconds)
    if random.oneIn(5) { return }  // the answer is lost
    receipt.store = StoreReceipt(store: StoreMark(id: current), isChainBroken: isBroken)
    try await rig.records.deliver(packet.id, receipt)
    if try await rig.recognize(StoreMark(id: current), knowsLess: isBroken) != .same { try await rig.markAll() }
  }

  // MARK: Invariants

  private func here() async -> Set<String> {
    var found: Set<String> = []
    for table in rig.tables {
      for id in await rig.ids(table.name.text) {
        // A record of the server's that found its name taken.
        let record = await rig.record(table.name.text, id)
        found.insert("\(table.name)/\(id)")
        if let server = record?.serverID { found.insert("\(table.name)/\(server)") }
      }
    }
    return found
  }

  /// nil: nothing is gone that was not deleted.
  mutating func lost() async -> String? {
    let here = await here()
    // An id that a store gave is another one at the next store.
    let gone = seen.subtracting(here).subtracting(deleted).filter { !$0.contains("/S") }
    seen = here.union(seen.intersection(gone))
    return gone.isEmpty ? nil : "gone: \(gone.sorted())"
  }

  /// nil: the store that answers has every record of this device.
  mutating func quietDifference() async throws -> String? {
    for _ in 0..<80 {
      while try await !rig.store.inFlight(Rig.shop, .records).isEmpty { try await send() }
      for table in [Self.price, rig["setting"]] { try await ask(table) }
      if try await rig.records.claim(items: 3, tables: rig.tables) == nil, !(await isMarking) { break }
    }
    if let lost = await lost() { return lost }
    // A record that was deleted here is at no store that had it before.
    let parts = await rig.ids("part")
    if let id = servers[current]!.localIDs(of: Self.part.name).first(where: { !parts.contains($0) }) {
      return "part/\(id) stays at the store"
    }
    for table in [rig["setting"], Self.part] {
      let rows = servers[current]!.rows(of: table.name)
      // One that has a store's name is what an older state of a store had of a record that was deleted here.
      for id in await rig.ids(table.name.text) {
        guard !deleted.contains("\(table.name)/\(id)"), id.drop(while: { $0 == "~" }).first != "S" else { continue }
        guard let record = await rig.record(table.name.text, id), record.state == .clean else {
          return "\(table.name)/\(id) never arrives"
        }
        let n = try JSONValue(parsing: record.fields)["n"]
        guard let row = rows[record.serverID ?? record.id] else { return "\(table.name)/\(id) is not at the store" }
        guard row["n"] == n else { return "\(table.name)/\(id) is \(n?.text ?? "") here, \(row.text) there" }
      }
    }
    for (id, row) in servers[current]!.rows(of: Self.price.name) {
      let fields = await rig.fields("price", id.text)
      guard fields == row.text else { return "price/\(id) is \(fields ?? "missing") here, \(row.text) there" }
    }
    return nil
  }

  private var isMarking: Bool {
    get async { await rig.store.records.store(of: Rig.shop)?.isMarking == true }
  }
}
