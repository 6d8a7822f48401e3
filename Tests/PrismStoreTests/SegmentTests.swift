import PrismProtocol
import PrismSQLite
import PrismStore
import PrismTestSupport
import Testing

/// Rows are in several tables, and delivered ones stay in theirs until all of it can be emptied (docs/store.md, "Segments").
@Suite struct SegmentTests {
  private let rig = Rig()

  /// Tables of 4 KiB take some 20 rows.
  private func open() async throws -> ReportStore { try await rig.open { $0.segmentBytes = 4096 } }

  private func append(_ store: ReportStore, _ numbers: Range<Int>, of type: ReportType = Rig.order) async {
    _ = await store.append([rig.batch(numbers, of: type)])
  }

  @discardableResult
  private func deliver(_ store: ReportStore, _ items: Int, types: Claim.TypeFilter = .all) async throws -> [Int] {
    guard let packet = try await store.claim(rig.claim(types: types, items: items)) else { return [] }
    try await store.settle(.delivered(packet.id, receipt: rig.receipt))
    return packet.numbers
  }

  private func number(_ sql: String) throws -> Int {
    Int(try SQLiteConnection(.init(path: rig.path, isReadOnly: true)).firstInt(sql) ?? 0)
  }

  private enum TableColumn: String, SQLiteColumn { case name }

  /// The rows of each table of the namespace's metas, delivered ones among them.
  private func rowCounts() throws -> [Int] {
    let connection = try SQLiteConnection(.init(path: rig.path, isReadOnly: true))
    var names: [String] = []
    let select = try connection.prepare(
      "SELECT name FROM sqlite_schema WHERE type = 'table' AND (name = 'm1' OR name GLOB 'm1_[0-9]*')")
    try select.forEachRow(of: TableColumn.self) { names.append($0.text(.name)) }
    return try names.map { try number("SELECT count(*) FROM \($0)") }
  }

  @Test("rows leave in their order over many tables, which are emptied and used again")
  func order() async throws {
    var left: [Int] = []
    for run in 0..<3 { left += try await leave(rounds: run * 10..<run * 10 + 10) }
    let store = try await open()
    #expect(try rowCounts().count > 3)
    #expect(try rowCounts().reduce(0, +) < 400, "emptied tables hold nothing")
    while case let numbers = try await deliver(store, 25), !numbers.isEmpty { left += numbers }
    #expect(left == Array(0..<900))
    #expect(try rowCounts().allSatisfy { $0 == 0 })
    #expect(try rowCounts().count < 20, "tables are used again")
    await store.close()
  }

  /// Of a run of its own. - Returns: the delivered numbers.
  private func leave(rounds: Range<Int>) async throws -> [Int] {
    let store = try await open()
    var left: [Int] = []
    for round in rounds {
      await append(store, round * 30..<round * 30 + 30)
      left += try await deliver(store, 25)
    }
    await store.close()
    return left
  }

  @Test("a backlog of many tables changes the schema three times, and the views show all of it")
  func backlog() async throws {
    let store = try await open()
    var schemas: Set<Int> = []
    for round in 0..<100 {
      await append(store, round * 30..<round * 30 + 30)
      schemas.insert(try number("PRAGMA schema_version"))
    }
    #expect(try rowCounts().count == 64)
    #expect(schemas.count == 1 + 3, "4, 16 and 64 tables")
    #expect(try number("SELECT count(*) FROM v_meta") == 3000)
    #expect(try number("SELECT count(DISTINCT report_id) FROM v_meta") == 3000)
    await store.close()
  }

  @Test("a delivered row that is still in its table is not claimed, shown, counted, exported, found or removed")
  func hidden() async throws {
    let store = try await open()
    await append(store, 0..<60)
    #expect(try await deliver(store, 25) == Array(0..<25))
    #expect(try rowCounts().reduce(0, +) == 60, "nothing was deleted")
    #expect(try number("SELECT count(*) FROM v_meta") == 35)
    #expect(try number("SELECT count(*) FROM v_meta WHERE is_used") == 0)
    #expect(try await store.typeCounts(of: Rig.shop).metas == [Rig.order: 35])
    let exported = try await store.export(Rig.shop, .meta, after: 0, limit: 1000)
    #expect(exported.count == 35)
    let first = RowID(priority: .rest, sequence: 1).reportID(epoch: store.epoch)
    let traced = try #require(try await store.trace(first).first)
    if case .delivered = traced.place {} else { Issue.record("\(traced.place)") }
    #expect(traced.createdTime == nil)
    #expect(try await store.remove(.report(first), of: Rig.shop) == 0)
    #expect(try await store.remove(.latest(5), of: Rig.shop) == 5)
    #expect(try await store.remove(.all, of: Rig.shop) == 30)
    #expect(try await store.ledger()[.delivered] == 25)
    while try await store.maintain() {}
    #expect(try rowCounts().reduce(0, +) == 0)
    await store.close()
  }

  @Test("dead letters wait again in their old place, between delivered rows that are still in the table")
  func requeued() async throws {
    let store = try await open()
    await append(store, 0..<40)
    try await deliver(store, 10)
    let dead = try #require(try await store.claim(rig.claim(items: 10)))
    let cause = Disposition.DeadCause(status: 422, message: "no", unixMilliseconds: 1, attempts: 1)
    try await store.settle(.dead(dead.id, cause: cause))
    try await deliver(store, 10)
    #expect(try number("SELECT json_array_length(spent) FROM ledger WHERE kind = 0") == 2, "one run")
    #expect(try await store.requeue(.all(nil)) == 10)
    #expect(try number("SELECT count(*) FROM v_meta") == 20)
    #expect(try await deliver(store, 100) == Array(10..<20) + Array(30..<40))
    #expect(try rowCounts().allSatisfy { $0 == 0 })
    await store.close()
  }

  @Test("rows that may not leave keep others' space for a bounded number of tables, and at most for an hour")
  func heldBack() async throws {
    let store = try await open()
    for round in 0..<60 {
      await append(store, round * 40..<round * 40 + 39)
      await append(store, round * 40 + 39..<round * 40 + 40, of: Rig.click)
      try await deliver(store, 1000, types: .only([Rig.order]))
    }
    #expect(try await store.ledger()[.waiting] == 60)
    let kept = try rowCounts().reduce(0, +) - 60
    #expect((1...4 * 4096 / 200).contains(kept), "\(kept) delivered rows")
    while try await store.maintain() {}
    rig.time.advance(by: .seconds(3601))
    while try await store.maintain() {}
    #expect(try rowCounts().reduce(0, +) == 60)
    #expect(try number("SELECT spent IS NULL FROM ledger WHERE kind = 0") == 1)
    #expect(try await deliver(store, 1000).count == 60)
    #expect(try rowCounts().allSatisfy { $0 == 0 })
    await store.close()
  }

  @Test("while delivered rows are in their table their delivery is known, however the clock is set")
  func clock() async throws {
    let store = try await open()
    await append(store, 0..<20)
    try await deliver(store, 10)
    rig.time.stepWallClock(milliseconds: 10 * 86_400_000)
    while try await store.maintain() {}
    #expect(try number("SELECT count(*) FROM settled") == 1)
    try await deliver(store, 10)
    while try await store.maintain() {}
    #expect(try number("SELECT count(*) FROM settled") == 2)
    rig.time.move(days: 2)
    while try await store.maintain() {}
    #expect(try number("SELECT count(*) FROM settled") == 0)
    await store.close()
  }

  @Test("rows of two namespaces in turns, with priorities, fill few runs")
  func runs() async throws {
    let store = try await rig.open { $0.segmentBytes = 1 << 20 }
    let other = NamespaceName("other")!
    for round in 0..<200 {
      _ = await store.append([
        rig.batch([round], priority: round % 7 == 0 ? .crash : .rest), rig.batch([round], in: other),
      ])
    }
    for _ in 0..<7 { try await deliver(store, 25) }
    #expect(try number("SELECT json_array_length(spent) / 2 FROM ledger WHERE kind = 0 AND spent NOTNULL") == 2)
    #expect(try await store.ledger()[.waiting] == 25)
    await store.close()
  }
}
