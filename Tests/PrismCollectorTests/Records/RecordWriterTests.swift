import PrismBase
import PrismProtocol
import PrismSQL
import PrismSQLite
import PrismTestSupport
import Testing

@testable import PrismCollector

/// Several writers at once, and what a store has after it was away.
@Suite("Writers of records") struct RecordWriterTests {
  @Test("writers who say which record they know never overwrite one another", arguments: RecordRig.kinds)
  func compareAndSet(kind: StoreRig.Kind) async throws {
    let postgresql = kind == .postgresql ? try await PostgreSQLRig() : nil
    let folder = StoreRig()
    let stores: [any PacketStore] =
      if let postgresql { try (0..<3).map { _ in try postgresql.store() } } else { [try folder.sqlite()] }
    let place = RecordPlace(namespace: RecordRig.shop, table: RecordRig.part, device: nil)
    let first = stores[0]
    _ = try await first.change([RecordRig.put("a", 0)], of: place, if: .isNew)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for writer in 0..<3 {
        let records = stores[writer % stores.count]
        group.addTask { for _ in 0..<10 { try await Self.increment(records, place) } }
      }
      try await group.waitForAll()
    }
    let record = try #require(try await first.record(RecordID("a")!, of: place))
    #expect(record.n == 30 && record.version == 31 && record.sequence == 31)
    for store in stores { await store.close() }
  }

  private static func increment(_ records: any RecordStore, _ place: RecordPlace) async throws {
    while true {
      let known = try #require(try await records.record(RecordID("a")!, of: place))
      do throws(RecordFailure) {
        _ = try await records.change([RecordRig.put("a", known.n + 1)], of: place, if: .matches([known.tag]))
        return
      } catch { guard error == .refused(.condition, index: 0) else { throw error } }
    }
  }

  @Test("a device never learns a number before all numbers before it")
  func ordered() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store { $0.commitDeadline = .seconds(60) }
    let records = store
    let setup = PostgreSQLSetup(target: try PostgreSQLTarget(uri: rig.server.uri(rig.database)), deadline: .seconds(30))
    let (connection, by) = (try setup.connect(), Deadline(.seconds(60)))
    try connection.execute("BEGIN", by: by)
    let place = RecordPlace(namespace: RecordRig.shop, table: RecordRig.part, device: nil)
    _ = try RecordTables(PostgreSQLDriver(connection, by: by)).change(
      [RecordRig.put("late", 1)], of: place, if: .always, now: 1)
    let second = Task { try await records.change([RecordRig.put("b", 2)], of: place, if: .always) }
    // It waits for the first one's end.
    for _ in 0..<600 {
      let waiting = try await rig.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")
      if waiting != "0" { break }
      try await Task.sleep(for: .milliseconds(50))
    }
    let early = try await records.news(of: RecordRig.part, in: RecordRig.shop, for: "d", after: 0)
    #expect(early == .operations([], sequence: 0))
    try connection.execute("COMMIT", by: by)
    _ = try await second.value
    guard
      case .operations(let operations, 2) = try await records.news(
        of: RecordRig.part, in: RecordRig.shop, for: "d", after: 0)
    else { throw RecordRigFault() }
    #expect(operations.map { "\($0.sequence) \($0.id)" } == ["1 late", "2 b"])
    await store.close()
  }

  @Test(
    "a database that replaces a damaged one keeps the records, and every device gets all of them once more",
    arguments: ["", StoreRig.packetsOfFirstVersion])
  func damaged(columns: String) async throws {
    let rig = StoreRig()
    rig.time.advance(by: .seconds(1))
    var store = try rig.sqlite()
    let place = RecordPlace(namespace: RecordRig.shop, table: RecordRig.part, device: nil)
    _ = try await store.change([RecordRig.put("a", 1), RecordRig.put("b", 2)], of: place, if: .always)
    await store.close()
    try SQLiteConnection(.init(path: rig.path + "/collector.db")).execute(columns + "PRAGMA user_version = 99")
    store = try rig.sqlite()
    #expect(rig.logged.contains { $0.contains("database is damaged") })
    guard
      case .all(place, let sequence) = try await store.news(
        of: RecordRig.part, in: RecordRig.shop, for: "d", after: 2)
    else { throw RecordRigFault() }
    guard
      case .stored(let record?, wasMade: false) = try await store.change(
        [RecordRig.put("a", 3)], of: place, if: .always
      ).first
    else { throw RecordRigFault() }
    #expect(record.sequence > sequence && sequence > 2)
    let lines = LinesRead()
    try await store.readAll(of: place) { lines.add($0) }
    #expect(lines.all.dropFirst().map(\.text) == ["a - 3", "b - 2"])
    await store.close()
  }
}

extension RecordNews {
  fileprivate var count: Int? { if case .operations(let operations, _) = self { operations.count } else { nil } }
}
