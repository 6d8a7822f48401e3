import Foundation
import PrismBase
import PrismConfig
import PrismOutputs
import PrismPacket
import PrismProtocol
import PrismSQL
import PrismTestSupport
import Testing

@testable import PrismCollector

/// Promises of the store on PostgreSQL beyond those of any store.
@Suite("The collector's store on PostgreSQL")
struct PostgreSQLStoreTests {
  static func maintain(_ store: PostgreSQLPacketStore) async throws {
    while try await store.maintain() {}
  }

  private static func id(ago milliseconds: Int64) -> PacketID {
    var random = SystemRandomNumberGenerator()
    return PacketID(unixMilliseconds: SystemTime().unixMilliseconds - milliseconds, using: &random)
  }

  @Test("the first question after the server ended its connections has its answer, and the upkeep goes on")
  func endedConnections() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store()
    _ = try await store.take(StoreRig.packet([1, 2]))
    _ = try await store.maintain()
    #expect(try await store.numbers() == [1, 2])
    _ = try await rig.sql(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '\(rig.database)' AND pid <> pg_backend_pid()"
    )
    #expect(try await store.numbers() == [1, 2])
    _ = try await store.maintain()
    await store.close()
  }

  @Test("blocks that an erasure holds for long make no fault of the upkeep") func heldBlocks() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store()
    _ = try await store.take(StoreRig.packet([1]))
    let setup = PostgreSQLSetup(target: try PostgreSQLTarget(uri: rig.server.uri(rig.database)), deadline: .seconds(60))
    let driver = PostgreSQLDriver(setup)
    try driver.begin(isWriting: true)
    try StoreTables(driver).lockBlocks()
    while try await store.maintain() {}
    #expect(store.warnings == [])
    driver.rollBack()
    await store.close()
  }

  @Test("replicas that start at once make the tables once, and days ahead")
  func migrates() async throws {
    let rig = try await PostgreSQLRig()
    let stores = try await withThrowingTaskGroup(of: PostgreSQLPacketStore.self) { group in
      for _ in 0..<4 { group.addTask { try rig.store() } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(try await rig.value("SELECT version FROM prism_schema") == "\(PostgreSQLSchema.version)")
    #expect(try await rig.value("SELECT count(*) FROM pg_inherits WHERE inhparent = 'blocks'::regclass") == "4")
    #expect(try await rig.value("SELECT count(*) FROM pg_inherits WHERE inhparent = 'packets'::regclass") == "35")
    for store in stores { await store.close() }
  }

  @Test("the tables of the first published version become those of this one, and keep what they hold")
  func upgrades() async throws {
    let (rig, fresh) = (try await PostgreSQLRig(), try await PostgreSQLRig())
    for one in [rig, fresh] { await (try one.store()).close() }
    let ids = OldIDs(now: SystemTime().unixMilliseconds)
    _ = try await rig.sql(
      PostgreSQLRig.firstVersion + """
        INSERT INTO streams (device, namespace, kind, packets, received, newest, forgotten) VALUES
          ('unset', 'prism', 'm', 5, now(), '\(ids.made(daysAgo: 1))', '\(ids.made(in: 1972))'),
          ('set', 'prism', 'm', 5, now(), '\(ids.made(daysAgo: 1))', '\(ids.made(daysAgo: 5))');
        INSERT INTO output_dead VALUES ('x', 7, 'late', to_timestamp(1700000000), true);
        """)
    let store = try rig.store()
    let columns = """
      SELECT string_agg(t, ',' ORDER BY t) FROM (SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable,
        column_default) t FROM information_schema.columns WHERE table_schema = 'public') c
      """
    #expect(try await rig.value(columns) == fresh.value(columns))
    for (device, old, new) in [
      ("unset", ids.made(in: 1971), ids.made(in: 1973)), ("set", ids.made(daysAgo: 6), ids.made(daysAgo: 4)),
    ] {
      #expect(try await store.take(StoreRig.packet([1], device: device, id: old)) == .tooOld)
      #expect(try await store.take(StoreRig.packet([1], device: device, id: new)) == .stored(chainIsBroken: false))
    }
    let letters = try await store.outputSource("x").dead(after: 0, limit: 10, onlyRequeued: true)
    #expect(letters == [DeadReport(id: 7, cause: "late", time: 1_700_000_000_000, isRequeued: true)])
    await store.close()
  }

  @Test("a newer schema is refused, and so is a role without rights, with what to do")
  func refusals() async throws {
    let rig = try await PostgreSQLRig()
    let first = try rig.store()
    _ = try await first.take(StoreRig.packet([1]))
    await first.close()
    try await rig.server.sql("DROP ROLE IF EXISTS stranger")
    try await rig.server.sql("CREATE ROLE stranger LOGIN")
    #expect(throws: PostgreSQLSetup.Refusal.self) { try rig.store(user: "stranger") }
    _ = try await rig.sql(
      "GRANT SELECT ON ALL TABLES IN SCHEMA public TO stranger; GRANT SELECT ON SEQUENCE report_blocks TO stranger")
    let reader = try rig.store(user: "stranger")
    await #expect(throws: StoreFailure.self) { try await reader.take(StoreRig.packet([2])) }
    #expect(reader.failure?.contains("42501") == true)
    #expect(try await reader.numbers() == [1], "it may read")
    await reader.close()
    _ = try await rig.sql("UPDATE prism_schema SET version = 99")
    #expect(throws: PostgreSQLSetup.Refusal.newerSchema(found: 99)) { try rig.store() }
    _ = try await rig.sql("UPDATE prism_schema SET version = 21")
    #expect(throws: PostgreSQLSetup.Refusal.olderSchema(found: 21)) { try rig.store() }
    #expect(try await rig.value("SELECT count(*) FROM blocks") == "1", "it stays as it was")
    let empty = try await PostgreSQLRig()
    _ = try await empty.sql("REVOKE CREATE ON SCHEMA public FROM public")
    #expect { try empty.store(user: "stranger") } throws: { "\($0)".contains("prism-collector migrate") }
    // Its owner may be about to make it: it is waited for.
    let missing = try PostgreSQLRig.missing(rig.server)
    #expect(missing.failure?.contains("does not exist") == true)
    await missing.close()
    _ = try await rig.sql("DROP OWNED BY stranger")
  }

  @Test("a type and an id with U+0000 are stored as they came, which no text of the database could hold")
  func zeroBytes() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store()
    #expect(
      try await store.take(StoreRig.packet([2], type: "a\\u0000b", reportPrefix: "\\u0000"))
        == .stored(chainIsBroken: false))
    var filter = ReportFilter(scope: .everything)
    filter.type = "a\0b"
    #expect(try await store.page(filter).map(\.reportID) == ["\0r2"])
    await store.close()
  }

  @Test("reports of days past retentionDay are dropped, the others stay")
  func retention() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store { $0.retention.days = 7 }
    _ = try await store.take(StoreRig.packet([1]))
    let connection = try PostgreSQLSetup(
      target: PostgreSQLTarget(uri: rig.server.uri(rig.database)), deadline: .seconds(10)
    ).connect()
    for days in [3, 20] { try Self.addDay(connection, ago: days) }
    try await Self.maintain(store)
    #expect(try await store.numbers() == [3, 1])
    #expect(try await rig.value("SELECT count(*) FROM pg_class WHERE relname ~ '^(blocks|payloads)_[0-9]+$'") == "10")
    var filter = ReportFilter(scope: .everything)
    filter.type = "t"
    #expect(try await store.numbers(filter) == [3, 1])
    await store.close()
  }

  @Test(
    "a day that an output has not taken stays, also past outputLagMByte, unless onLag says skip or refuse",
    arguments: [
      (Int64.max, LagPolicy.skip, [20, 1], 0, true), (0, .skip, [1], 1, true), (0, .refuse, [20, 1], 0, false),
      (0, .hold, [20, 1], 0, true),
    ])
  func lag(bytes: Int64, policy: LagPolicy, left: [Int], skipped: Int, takes: Bool) async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store {
      ($0.retention.days, $0.retention.outputLagBytes, $0.retention.onLag) = (7, bytes, policy)
    }
    let connection = try PostgreSQLSetup(
      target: PostgreSQLTarget(uri: rig.server.uri(rig.database)), deadline: .seconds(10)
    ).connect()
    _ = try await store.take(StoreRig.packet([1]))
    try Self.addDay(connection, ago: 20)
    let source = store.outputSource("test")
    #expect(try await source.lead())
    try await Self.maintain(store)
    #expect(try await store.numbers() == left)
    #expect(store.figures.skipped == (skipped == 0 ? [:] : ["test": skipped]))
    #expect((store.failure == nil) == takes)
    if !takes {
      let packet = try StoreRig.packet([9])
      await #expect(throws: StoreFailure.unavailable(LagPolicy.cause)) { try await store.take(packet) }
      try await source.note(cursor: 1_000_000, refused: [])
      try await Self.maintain(store)
    }
    #expect(try await store.take(StoreRig.packet([9])) == .stored(chainIsBroken: false))
    #expect(store.failure == nil)
    await source.close()
    await store.close()
  }

  /// A day as it was when it was written, with one report whose number is the day's.
  static func addDay(_ connection: PostgreSQLConnection, ago days: Int) throws {
    let by = Deadline(.seconds(10))
    let day = try connection.query(
      "SELECT d::text, (extract(epoch FROM d) * 1000)::bigint FROM (SELECT (now() AT TIME ZONE 'UTC')::date - \(days) AS d) x",
      by: by)
    try PostgreSQLDays(statements: connection.statements(by: by)).add(day: day.text(0, 0))
    _ = try connection.query("INSERT INTO days VALUES ($1::date, 0)", [day.text(0, 0)], by: by)
    let packet = try StoreRig.packet([days])
    let run = ReportBlock.Run(
      first: Int64(1000 - days), count: 1, stream: StreamID(packet.delivery.context), packet: packet.id,
      received: day.int(0, 1) + 3_600_000)
    let row = try ReportBlock(runs: [run], text: packet.text).row(packet.reports, RestPacker())
    try StoreTables(PostgreSQLDriver(connection, by: by)).replace(by: row.head, row.body)
  }

  @Test("ids of packets are forgotten after 30 days by dropping their day, and such a packet is too old then")
  func forgets() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store()
    let day: Int64 = 86_400_000
    // A day that is over, as if it had been made in time.
    _ = try await rig.sql(
      """
      DO $$ DECLARE d date := (now() AT TIME ZONE 'UTC')::date - 40; BEGIN
        EXECUTE format('CREATE TABLE %I PARTITION OF packets FOR VALUES FROM (%L) TO (%L)', 'packets_' || to_char(d, 'YYYYMMDD'),
          prism_day_start(d), prism_day_start(d + 1));
      END $$
      """)
    let (old, recent) = (
      try StoreRig.packet([1], id: Self.id(ago: 40 * day)), try StoreRig.packet([2], id: Self.id(ago: day))
    )
    _ = try await store.take(old)
    _ = try await store.take(recent)
    #expect(try await store.take(old) == .duplicate)
    try await Self.maintain(store)
    #expect(try await rig.value("SELECT count(*) FROM packets") == "1")
    #expect(try await store.take(old) == .tooOld)
    #expect(try await store.take(recent) == .duplicate)
    let late = try StoreRig.packet([3], id: Self.id(ago: 45 * day), after: recent.id)
    #expect(
      try await store.take(late) == .stored(chainIsBroken: false), "a device whose clock went back names the last")
    #expect(
      try await store.take(StoreRig.packet([4], device: "new", id: Self.id(ago: 50 * day)))
        == .stored(chainIsBroken: false))
    await store.close()
  }

  @Test("a page never passes a report that commits later")
  func horizon() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store()
    _ = try await store.take(StoreRig.packet([1]))
    let rollBack = try rig.openTransaction()
    _ = try await store.take(StoreRig.packet([3]))
    #expect(try await store.numbers() == [1], "ids of the open transaction are lower than those of the third report")
    try rollBack()
    #expect(try await store.numbers() == [1, 3])
    await store.close()
  }

  @Test("a day whose tables are missing is made by who needs it")
  func missingDay() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store()
    _ = try await rig.sql(
      "DO $$ BEGIN EXECUTE 'DROP TABLE blocks_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD'); END $$")
    #expect(try await store.take(StoreRig.packet([1])) == .stored(chainIsBroken: false))
    #expect(try await store.numbers() == [1])
    await store.close()
  }
}

extension PostgreSQLRig {
  fileprivate static func missing(_ server: PostgreSQLServer) throws -> PostgreSQLPacketStore {
    try PostgreSQLPacketStore(
      .init(target: PostgreSQLTarget(uri: server.uri("absent")), log: Logger(write: { _ in })))
  }
}

struct TestFailed: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}
