import PrismBase
import PrismProtocol
import PrismSQL
import PrismTestSupport
import Testing

@testable import PrismCollector

/// How many days of data the collector drops while clocks are wrong.
@Suite("Days that are dropped", .timeLimit(.minutes(2)))
struct DayAllowanceTests {
  private static let day: Int64 = 86_400

  @Test("one day of data a day of service, over restarts, and as many more as retentionDay was lowered by")
  func decision() {
    var facts: [String: Int64] = [:]
    let advance = { (days: ClosedRange<Int64>, kept: Int64, served: Int64) in
      // Each time as after a restart.
      var allowance = DayAllowance("x") { facts[$0] }
      allowance.advance(over: Array(days), keptDays: kept, served: served)
      for fact in allowance.facts("x") { facts[fact.name] = fact.value }
      return allowance.due
    }
    #expect(advance(0...99, 30, 0) == 0)
    for second in stride(from: Int64(1), to: Self.day, by: 3600) { #expect(advance(0...99, 30, second) == 0) }
    #expect(advance(0...99, 30, Self.day) == 1)
    #expect(advance(0...99, 30, Self.day + 60) == 1)
    #expect(advance(0...99, 30, 10 * Self.day) == 2, "a long rest saves nothing up")
    #expect(advance(0...99, 25, 10 * Self.day + 60) == 7, "an operator's word")
    #expect(advance(0...99, 25, 10 * Self.day + 120) == 7)
    #expect(advance(0...99, 40, 10 * Self.day + 180) == 7)
    // A check each minute drops a day each day, for years.
    var (last, served) = (Int64(7), 11 * Self.day)
    for number in Int64(0)..<400 {
      served = 11 * Self.day + number * Self.day + number % 60
      last = advance(8...1000, 40, served)
    }
    #expect(last == 407)
  }

  @Test("SQLite: many days that are past retentionDay leave one a day of service, with a line of the log each")
  func sqlite() async throws {
    let rig = StoreRig()
    var store = try rig.sqlite()
    for number in 0..<6 {
      _ = try await store.take(StoreRig.packet([number, number]))
      rig.time.advance(by: .seconds(Self.day))
      while try await store.maintain() {}
    }
    await store.close()
    for round in 0..<3 {
      // A restart loop gives nothing.
      for _ in 0..<3 {
        store = try rig.sqlite { $0.retention.days = 1 }
        while try await store.maintain() {}
        #expect(try await store.numbers().compactMap({ $0 }).min() == round + 1)
        await store.close()
      }
      store = try rig.sqlite { $0.retention.days = 1 }
      rig.time.advance(by: .seconds(Self.day))
      await store.close()
    }
    let lines = rig.logged.filter { $0.contains("a day past retentionDay is dropped") }
    #expect(lines.count == 3 && lines.allSatisfy { $0.contains("rows=2") && $0.contains("day=") }, "\(lines)")
  }

  @Test(
    "PostgreSQL: with days that are past retentionDay one leaves, with a line of the log, and no more after a restart")
  func postgreSQL() async throws {
    let rig = try await PostgreSQLRig()
    let first = try rig.store()
    _ = try await first.take(StoreRig.packet([1]))
    let connection = try PostgreSQLSetup(
      target: PostgreSQLTarget(uri: rig.server.uri(rig.database)), deadline: .seconds(10)
    ).connect()
    for days in [20, 30, 40] { try PostgreSQLStoreTests.addDay(connection, ago: days) }
    await first.close()
    for _ in 0..<3 {
      let store = try rig.store { $0.retention.days = 7 }
      while try await store.maintain() {}
      #expect(try await store.numbers().count == 3)
      await store.close()
    }
    #expect(rig.logged.count { $0.contains("a day past retentionDay is dropped") && $0.contains("rows=1") } == 1)
    // A day of service later.
    _ = try await rig.sql("UPDATE facts SET value = value + 86400 WHERE name = 'served_seconds'")
    let store = try rig.store { $0.retention.days = 7 }
    while try await store.maintain() {}
    #expect(try await store.numbers().count == 2)
    await store.close()
  }

  @Test(
    "PostgreSQL: a database whose clock differs by over a minute is named, and drops nothing",
    arguments: [-40 * 86_400_000, -600_000, 600_000, 40 * 86_400_000] as [Int64])
  func clocks(milliseconds: Int64) async throws {
    let (rig, time) = (try await PostgreSQLRig(), ManualTime())
    time.stepWallClock(milliseconds: SystemTime().unixMilliseconds - time.unixMilliseconds + milliseconds)
    let store = try rig.store { ($0.retention.days, $0.time) = (7, time) }
    _ = try await store.take(StoreRig.packet([1]))
    let connection = try PostgreSQLSetup(
      target: PostgreSQLTarget(uri: rig.server.uri(rig.database)), deadline: .seconds(10)
    ).connect()
    try PostgreSQLStoreTests.addDay(connection, ago: 20)
    while try await store.maintain() {}
    #expect(try await store.numbers().count == 2)
    #expect(store.warnings.contains { $0.hasPrefix("the database's clock differs from this machine's by ") })
    #expect(store.failure == nil)
    #expect(abs(store.figures.clockAheadSeconds + milliseconds / 1000) < 30)
    time.stepWallClock(milliseconds: -milliseconds)
    while try await store.maintain() {}
    #expect(try await store.numbers().count == 1)
    #expect(store.warnings == [])
    await store.close()
  }

  @Test("PostgreSQL: what a wrong clock wrote into a day long ago stays for as many days of service as all does")
  func writtenLate() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store { $0.retention.days = 7 }
    _ = try await store.take(StoreRig.packet([1]))
    while try await store.maintain() {}
    let connection = try PostgreSQLSetup(
      target: PostgreSQLTarget(uri: rig.server.uri(rig.database)), deadline: .seconds(10)
    ).connect()
    try PostgreSQLStoreTests.addDay(connection, ago: 20)
    let today = "'day.' || to_char((now() AT TIME ZONE 'UTC')::date"
    #expect(try await rig.value("SELECT count(*) FROM facts WHERE name = \(today), 'YYYYMMDD')") == "1")
    _ = try await rig.sql("INSERT INTO facts VALUES (\(today) - 20, 'YYYYMMDD'), 0)")
    while try await store.maintain() {}
    #expect(try await store.numbers().count == 2)
    _ = try await rig.sql("UPDATE facts SET value = value + 7 * 86400 WHERE name = 'served_seconds'")
    while try await store.maintain() {}
    #expect(try await store.numbers().count == 1)
    await store.close()
  }

  @Test("PostgreSQL: replicas count the time of service once, and no replica counts a step of the database's clock")
  func service() async throws {
    let (rig, time) = (try await PostgreSQLRig(), ManualTime())
    time.stepWallClock(milliseconds: SystemTime().unixMilliseconds - time.unixMilliseconds)
    let store = try rig.store { $0.time = time }
    let served = { try await rig.value("SELECT value FROM facts WHERE name = 'served_seconds'") }
    while try await store.maintain() {}
    #expect(try await served() == "0")
    // Its own hour, of which the database's clock says 100 s; then the database's year, of which it ran 50 s.
    time.advance(by: .seconds(3600))
    time.stepWallClock(milliseconds: -3_600_000)
    _ = try await rig.sql("UPDATE facts SET value = value - 100 WHERE name = 'served_at'")
    while try await store.maintain() {}
    let first = Int(try await served() ?? "") ?? 0
    #expect((100...130).contains(first))
    time.advance(by: .seconds(50))
    time.stepWallClock(milliseconds: -50_000)
    _ = try await rig.sql("UPDATE facts SET value = value - 31536000 WHERE name = 'served_at'")
    while try await store.maintain() {}
    #expect(try await served() == "\(first + 50)")
    await store.close()
  }

  @Test(
    "a device whose clock is not set loses nothing: its packets are too old only if ids like theirs were forgotten",
    arguments: StoreRig.Kind.allCases)
  func unsetClock(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    let ids = OldIDs(now: rig.now(kind))
    let today = try StoreRig.packet([1], id: ids.made(daysAgo: 0))
    #expect(try await store.take(today) == .stored(chainIsBroken: false))
    // It lost its state, and starts in 1970 or 2000, or its predecessor never came.
    for (number, year) in [(2, 1970), (3, 2000)] {
      let packet = try StoreRig.packet([number], id: ids.made(in: Int64(year)))
      #expect(try await store.take(packet) == .stored(chainIsBroken: false))
      #expect(try await store.take(packet) == .duplicate)
    }
    let late = try StoreRig.packet([4], id: ids.made(in: 1970), after: ids.made(in: 1971))
    #expect(try await store.take(late) == .predecessorMissing)
    #expect(try await store.take(late, isLate: true) == .stored(chainIsBroken: true))
    #expect(try await store.numbers() == [1, 2, 3, 4])
    await store.close()
  }

  @Test("SQLite: a clock of the collector that is ahead makes no packet too old, and a recorded one of 1970 is not new")
  func collectorAhead() async throws {
    let rig = StoreRig()
    let store = try rig.sqlite { $0.idsKept = 1 }
    let ids = OldIDs(now: rig.time.unixMilliseconds)
    let recorded = try StoreRig.packet([0], id: ids.made(in: 1970))
    let last = try StoreRig.packet([1], id: ids.made(daysAgo: 0))
    for packet in [recorded, last] { _ = try await store.take(packet) }
    rig.time.stepWallClock(milliseconds: 40 * 86_400_000)
    let fresh = try StoreRig.packet([2], id: ids.made(daysAgo: 1))
    #expect(try await store.take(fresh) == .stored(chainIsBroken: false), "of a device that lost its state")
    rig.time.advance(by: .seconds(32 * Self.day))
    while try await store.maintain() {}
    #expect(try await store.take(recorded) == .tooOld)
    await store.close()
  }
}
