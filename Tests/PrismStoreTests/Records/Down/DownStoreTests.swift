import PrismProtocol
import PrismSQLite
import PrismStore
import PrismTestSupport
import Testing

@Suite("Tables that come down, in the store") struct DownStoreTests {
  private static func prices(_ count: Int, _ fields: String = #"{"n":1}"#) -> [DownRecord] {
    (0..<count).map { DownRecord("p\(1000 + $0)", fields) }
  }

  @Test("a whole table is read back by id and in pages, also after a restart; a second one takes its place")
  func wholeTable() async throws {
    var rig = try await DownRig()
    #expect(try await rig.take("price", Self.prices(1200), sequence: 7).executed == 1200)
    try await rig.records.restart(isKill: true)
    #expect(await rig.after("price") == 7)
    let record = try #require(await rig.record("price", "p1003"))
    #expect(record.serverID == record.id && record.state == .clean && record.version == 7)
    guard
      case .list(let page, let generation, true)? = await rig.records.ask(
        rig["price"], .list(after: RecordID("p1100"), limit: 3))?.answer
    else { throw Missing() }
    #expect(page.map(\.id.text) == ["p1101", "p1102", "p1103"])
    try await rig.take("price", [DownRecord("x", "{}"), DownRecord("p1003", #"{"n":2}"#)], sequence: 9)
    #expect(await rig.ids("price") == ["p1003", "x"])
    #expect(await rig.fields("price", "p1003") == #"{"n":2}"#)
    let status = try #require(await rig.store.records.tables(of: Rig.shop).first)
    #expect(status.records == 2 && status.generation > generation && status.down?.after == 9)
  }
  private struct Missing: Error {}

  @Test("readers see the old table or the new one while a table comes, and the old one if it never ends")
  func neverHalf() async throws {
    var rig = try await DownRig()
    try await rig.take("price", Self.prices(300, #"{"n":1}"#), sequence: 1)
    let content = try await rig.store.beginTable(rig.target("price"))
    for step in 0..<3 {
      let records = Array(Self.prices(300, #"{"n":2}"#)[(step * 100)...].prefix(100))
      #expect(try await rig.store.add(records, sequence: 2, to: content))
      #expect(await Self.sum(rig) == 300)
    }
    let reader = Task { [rig] in
      var sums: Set<Int> = []
      while !Task.isCancelled { sums.insert(await Self.sum(rig)) }
      return sums
    }
    #expect(try await rig.store.finishTable(content, rig.target("price"), sequence: 2).end == .done)
    #expect(await Self.sum(rig) == 600)
    reader.cancel()
    #expect(await reader.value.isSubset(of: [300, 600]))
    let unfinished = try await rig.store.beginTable(rig.target("price"))
    #expect(try await rig.store.add(Self.prices(100, #"{"n":3}"#), sequence: 3, to: unfinished))
    try await rig.records.restart(isKill: true)
    #expect(await Self.sum(rig) == 600)
    #expect(try await !rig.store.add(Self.prices(100), sequence: 3, to: unfinished))
    #expect(try await rig.store.finishTable(unfinished, rig.target("price"), sequence: 3).end == .outdated)
    #expect(await rig.after("price") == 2)
    // Rows that nothing reads any more are deleted in quiet times.
    while try await rig.store.maintain() {}
    #expect(try rig.count("SELECT count(DISTINCT content) FROM down_records") == 1)
  }

  /// Of all records in one page: a mixture of both tables would give another sum.
  private static func sum(_ rig: DownRig) async -> Int {
    guard
      case .list(let records, _, false)? = await rig.records.ask(rig["price"], .list(after: nil, limit: 1000))?.answer
    else { return -1 }
    return records.reduce(0) { $0 + ((try? JSONValue(parsing: $1.fields))?["n"]?.int ?? -1) }
  }

  @Test("operations are executed once each, with their place, over restarts; an answer that comes late changes nothing")
  func operations() async throws {
    var rig = try await DownRig()
    try await rig.take("price", [DownRecord("a", "{}"), DownRecord("b", "{}")], sequence: 3)
    let operations = [
      DownOperation(5, "price", "a", #"{"n":5}"#), DownOperation(6, "price", "b", nil),
      DownOperation(8, "price", "c", #"{"n":8}"#), DownOperation(9, "price", "zz", nil),
    ]
    #expect(try await rig.apply("price", operations, to: 12) == outcome(executed: 4, changed: ["price"]))
    #expect(await rig.ids("price") == ["a", "c"])
    #expect(await rig.record("price", "c")?.version == 8)
    try await rig.records.restart(isKill: true)
    #expect(await rig.after("price") == 12)
    #expect(try await rig.apply("price", operations, after: 3).end == .outdated)
    #expect(try await rig.apply("price", [DownOperation(13, "price", "d", "{}")], after: 3).end == .outdated)
    #expect(await rig.ids("price") == ["a", "c"])
    #expect(try await rig.apply("price", [], to: 12) == DownOutcome(.done))
  }

  private func outcome(executed: Int, changed: [String]) -> DownOutcome {
    var outcome = DownOutcome(.done)
    (outcome.executed, outcome.changed) = (executed, Set(changed.map { RecordTableName($0)! }))
    return outcome
  }

  @Test("an operation waits for the one that it depends on, unless that one is executed or all other tables are ahead")
  func dependencies() async throws {
    let rig = try await DownRig()
    try await rig.take("bundle", [], sequence: 0)
    let operations = [
      DownOperation(4, "bundle", "a", "{}"), DownOperation(6, "bundle", "b", "{}", after: "o4"),
      DownOperation(9, "bundle", "c", "{}", after: "o8"), DownOperation(10, "bundle", "d", "{}"),
    ]
    let first = try await rig.apply("bundle", operations, othersThrough: 7)
    #expect(first.end == .waits(before: 9) && first.executed == 2)
    #expect(await rig.after("bundle") == 6)
    let second = try await rig.apply("bundle", Array(operations.dropFirst(2)), othersThrough: 8)
    #expect(second.end == .done && second.executed == 2)
    #expect(await rig.ids("bundle") == ["a", "b", "c", "d"])
  }

  @Test("a table takes maxRecord records: more are not executed, and what went before them stays")
  func full() async throws {
    var rig = try await DownRig()
    rig.tables[0].maxRecord = 2
    try await rig.take("price", [DownRecord("a", "{}")], sequence: 1)
    let operations = [
      DownOperation(2, "price", "b", "{}"), DownOperation(3, "price", "c", "{}"), DownOperation(4, "price", "a", nil),
    ]
    let first = try await rig.apply("price", operations)
    #expect(first.end == .tableFull && first.executed == 1)
    rig.tables[0].maxRecord = 3
    #expect(try await rig.apply("price", Array(operations.dropFirst())).end == .done)
    #expect(await rig.ids("price") == ["b", "c"])
  }

  @Test("a deletion takes the records along that refer to it, also those of a whole table that comes without it")
  func cascade() async throws {
    let rig = try await DownRig()
    try await rig.take("price", Self.prices(3), sequence: 1)
    let bundles = [
      DownRecord("a", #"{"price":"p1000"}"#), DownRecord("b", #"{"price":"p1001"}"#),
      DownRecord("c", #"{"price":"p1000"}"#), DownRecord("d", #"{"price":7,"p":"p1000"}"#),
      DownRecord("e", #"{"price":"p1002"}"#),
    ]
    try await rig.take("bundle", bundles, sequence: 2)
    _ = try await rig.apply("bundle", [DownOperation(3, "bundle", "e", #"{"price":"p1000"}"#)])
    _ = try await rig.apply("bundle", [DownOperation(4, "bundle", "c", #"{"price":"p1001"}"#)])
    let deleted = try await rig.apply("price", [DownOperation(5, "price", "p1000", nil)])
    #expect(deleted == outcome(executed: 1, changed: ["price", "bundle"]))
    #expect(await rig.ids("bundle") == ["b", "c", "d"])
    try await rig.take("price", [DownRecord("p1002", "{}")], sequence: 6)
    #expect(await rig.ids("bundle") == ["d"])
    #expect(try rig.count("SELECT count(*) FROM down_links l JOIN down_tables t ON t.content = l.content") == 0)
    let status = await rig.store.records.tables(of: Rig.shop).first { $0.name.text == "bundle" }
    #expect(status?.records == 1)
  }

  @Test("a table with an id twice, or of another declaration than it began with, is not taken")
  func refusedTables() async throws {
    var rig = try await DownRig()
    try await rig.take("price", Self.prices(2), sequence: 1)
    let twice = try await rig.take("price", [DownRecord("a", "{}"), DownRecord("a", "{}")], sequence: 2)
    #expect(twice.end == .unreadable)
    let content = try await rig.store.beginTable(rig.target("price"))
    rig.tables[0].scope = .device
    #expect(try await rig.store.finishTable(content, rig.target("price"), sequence: 2).end == .outdated)
    #expect(await rig.ids("price") == ["p1000", "p1001"])
    #expect(try await rig.take("setting", [DownRecord("a", #"{"n":1,"n":2}"#)], sequence: 2).end == .unreadable)
    #expect(await rig.after("setting") == nil)
  }

  @Test(
    "a table that is declared in another way is asked for as a whole, and read until then; one that is not is forgotten"
  )
  func declarations() async throws {
    var rig = try await DownRig()
    try await rig.take("price", Self.prices(2), sequence: 1)
    try await rig.store.keepTables(rig.tables, of: Rig.shop)
    #expect(await rig.after("price") == 1)
    rig.tables[0].scope = .device
    try await rig.store.keepTables(rig.tables, of: Rig.shop)
    #expect(await rig.after("price") == nil)
    #expect(await rig.ids("price").count == 2)
    #expect(try await rig.apply("price", [DownOperation(2, "price", "x", "{}")]).end == .outdated)
    try await rig.store.keepTables(Array(rig.tables.dropFirst()), of: Rig.shop)
    #expect(await rig.ids("price") == [])
    while try await rig.store.maintain() {}
    #expect(try rig.count("SELECT count(*) FROM down_records") == 0)
  }

  @Test("a reference may name a record that only the server changes") func references() async throws {
    let rig = try await DownRig()
    var own = RecordTable(RecordTableName("own")!, references: ["price": RecordTableName("price")!])
    try await rig.take("price", Self.prices(1), sequence: 1)
    #expect(await rig.records.put(own, "a", ["price": "p1000"]) == .stored(version: 1))
    guard case .refused(let refusal)? = await rig.records.put(own, "b", ["price": "nothing"]) else { throw Missing() }
    #expect(refusal.code == .referenceMissing)
    own.maxRecord = 5
    let packet = try #require(try await rig.records.claim(tables: [own]))
    #expect(packet.operations.first?.fields == ["price": "p1000"])
  }
}

extension DownRig {
  func count(_ sql: String) throws -> Int {
    Int(try SQLiteConnection(.init(path: records.rig.path)).firstInt(sql) ?? -1)
  }
}
