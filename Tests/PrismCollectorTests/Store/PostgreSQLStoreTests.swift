import Foundation
import PrismBase
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// Promises of the store on PostgreSQL beyond those of any store.
@Suite("The collector's store on PostgreSQL")
struct PostgreSQLStoreTests {
  private static func maintain(_ store: PostgreSQLPacketStore) async throws {
    while try await store.maintain() {}
  }

  private static func id(ago milliseconds: Int64) -> PacketID {
    var random = SystemRandomNumberGenerator()
    return PacketID(unixMilliseconds: SystemTime().unixMilliseconds - milliseconds, using: &random)
  }

  @Test("replicas that start at once make the tables once, and days ahead")
  func migrates() async throws {
    let rig = try await PostgreSQLRig()
    let stores = try await withThrowingTaskGroup(of: PostgreSQLPacketStore.self) { group in
      for _ in 0..<4 { group.addTask { try rig.store() } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(try await rig.value("SELECT version FROM prism_schema") == "\(PostgreSQLSchema.version)")
    #expect(try await rig.value("SELECT count(*) FROM pg_inherits WHERE inhparent = 'reports'::regclass") == "4")
    #expect(try await rig.value("SELECT count(*) FROM pg_inherits WHERE inhparent = 'packets'::regclass") == "35")
    for store in stores { await store.close() }
  }

  @Test("common information of a packet's rows is stored once a day, and not again with the next packet")
  func contexts() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store()
    let common = #""app":"8.12.0","device":"\#(String(repeating: "d", count: 400))""#
    let first = try StoreRig.packet(Array(0..<50), members: { #""own":\#($0),"# + common })
    let second = try StoreRig.packet(Array(50..<60), after: first.id, members: { #""own":\#($0),"# + common })
    for packet in [first, second] { _ = try await store.take(packet) }
    #expect(try await rig.value("SELECT count(*) FROM contexts") == "1")
    #expect(try await rig.value("SELECT max(length(meta)) < 100 FROM reports") == "t")
    #expect(try await rig.value("SELECT count(*) FROM report WHERE meta ->> 'app' = '8.12.0' AND meta ? 'n'") == "60")
    // Alone, or without enough in common, a row stays whole.
    _ = try await store.take(StoreRig.packet([60], after: second.id, members: { _ in common }))
    _ = try await store.take(StoreRig.packet([61, 62], device: "e"))
    #expect(try await rig.value("SELECT count(*) FROM reports WHERE context IS NULL") == "3")
    #expect(try await rig.value("SELECT count(*) FROM contexts") == "1")
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
    _ = try await rig.sql("UPDATE prism_schema SET version = 20")
    #expect(throws: PostgreSQLSetup.Refusal.olderSchema(found: 20)) { try rig.store() }
    #expect(try await rig.value("SELECT count(*) FROM reports") == "1", "it stays as it was")
    let empty = try await PostgreSQLRig()
    _ = try await empty.sql("REVOKE CREATE ON SCHEMA public FROM public")
    #expect { try empty.store(user: "stranger") } throws: { "\($0)".contains("prism-collector migrate") }
    // Its owner may be about to make it: it is waited for.
    let missing = try PostgreSQLRig.missing(rig.server)
    #expect(missing.failure?.contains("does not exist") == true)
    await missing.close()
    _ = try await rig.sql("DROP OWNED BY stranger")
  }

  @Test("a packet that the database can't hold is rejected, its neighbours in the group are not lost")
  func rejects() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store()
    let bad = try StoreRig.packet([2], type: "a\\u0000b")
    let group = [try StoreRig.packet([1]), bad].map { PacketSubmission(packet: $0) }
    do {
      _ = try await store.take(group)
      Issue.record("a text with U+0000 was stored")
    } catch {
      guard case .rejected(let cause) = error else { throw error }
      #expect(cause.contains("22021") && !cause.contains("0x00"), "the cause names no content")
    }
    let queue = PacketQueue(store: store, time: SystemTime())
    let other = try StoreRig.packet([3], device: "e")
    async let good = queue.take(other)
    async let refused = queue.take(bad)
    #expect(try await good.get() == .stored(chainIsBroken: false))
    guard case .failure(let refusal) = await refused else { throw TestFailed("the packet was taken") }
    #expect(refusal.status == 422)
    #expect(try await store.numbers() == [3])
    await store.close()
  }

  @Test("the view shows metas as jsonb, also those that jsonb can't hold")
  func view() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store()
    let packet = try StoreRig.packet([1], type: "t\",\"s\":\"a\\u0000b\\\\u0000")
    _ = try await store.take(packet)
    _ = try await store.take(StoreRig.packet([2], type: "t\",\"s\":1e999999,\"u\":\"x", payload: [1, 2]))
    #expect(try await rig.value("SELECT meta ->> 's' FROM report WHERE report_id = 'r1'") == "a\u{FFFD}b\\u0000")
    #expect(try await rig.sql("SELECT count(*), count(meta), count(payload) FROM report") == [["2", "1", "1"]])
    #expect(
      try await rig.sql("SELECT device, namespace, kind, packet, chain_broken FROM report ORDER BY id LIMIT 1")
        == [["d", "prism", "meta", packet.id.description, "f"]])
    await store.close()
  }

  @Test("the view shows by how much a report's time was corrected, also without a time or a meta that can be read")
  func correction() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store()
    for packet in try StoreRig.correctedPackets() { _ = try await store.take(packet) }
    let sum = try await rig.value("SELECT sum(correction * (meta ->> 'n')::bigint) FROM report")
    #expect(sum == "\(StoreRig.correctedSum)")
    _ = try await rig.sql("UPDATE reports SET created_time = NULL WHERE report_id = 'r2'")
    _ = try await rig.sql("UPDATE reports SET meta = 'x' WHERE report_id = 'r3'")
    #expect(try await rig.value("SELECT count(*) FROM report WHERE correction = 0") == "3")
    await store.close()
  }

  @Test("reports of days past retentionDay are dropped, the others stay; days that are over get their indexes")
  func retention() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store { $0.retentionDays = 7 }
    _ = try await store.take(StoreRig.packet([1]))
    let connection = try PostgreSQLSetup(
      target: PostgreSQLTarget(uri: rig.server.uri(rig.database)), deadline: .seconds(10)
    ).connect()
    for days in [3, 20] { try Self.addDay(connection, ago: days) }
    try await Self.maintain(store)
    #expect(try await store.numbers() == [3, 1])
    #expect(try await rig.value("SELECT count(*) FROM pg_class WHERE relname ~ '^reports_[0-9]+$'") == "5")
    #expect(try await rig.value("SELECT count(*) FROM days WHERE is_closed") == "1")
    #expect(
      try await rig.value("SELECT count(*) FROM pg_class WHERE relname ~ '^reports_[0-9]+_(id|stream|type)$'") == "3")
    #expect(try await rig.value("SELECT count(*) FROM pg_class WHERE relname ~ '^reports_[0-9]+_brin$'") == "4")
    var filter = ReportFilter()
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
    let store = try rig.store { ($0.retentionDays, $0.outputLagBytes, $0.onLag) = (7, bytes, policy) }
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
    try connection.execute(
      """
      DO $$ DECLARE d date := (now() AT TIME ZONE 'UTC')::date - \(days); n text := 'reports_' || to_char(d, 'YYYYMMDD');
      BEGIN
        EXECUTE format('CREATE TABLE %I PARTITION OF reports FOR VALUES FROM (%L) TO (%L)', n, d || ' 00:00+00', (d + 1) || ' 00:00+00');
        EXECUTE format('CREATE INDEX %I ON %I USING brin (id)', n || '_brin', n);
        INSERT INTO days VALUES (d, 0);
        INSERT INTO reports (received, stream, packet, id, chain_broken, type, report_id, meta)
          SELECT d + interval '1 hour', id, last_packet, 1000 - \(days), false, 't', 'r', '{"n":\(days)}' FROM streams LIMIT 1;
      END $$
      """, by: Deadline(.seconds(10)))
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
      "DO $$ BEGIN EXECUTE 'DROP TABLE reports_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD'); END $$")
    #expect(try await store.take(StoreRig.packet([1])) == .stored(chainIsBroken: false))
    #expect(try await store.numbers() == [1])
    await store.close()
  }

  @Test(
    "a connection string is checked before it is used: a password in it is refused",
    arguments: [
      ("postgresql://u:secret@db/prism", "holds a password"),
      ("postgresql://db/prism?password=secret", "holds a password"),
      ("host=db", "must begin with postgresql://"), ("postgresql://db/prism?nonsense=1", "no connection URI"),
    ])
  func targets(uri: String, words: String) {
    #expect { try PostgreSQLTarget(uri: uri) } throws: { "\($0)".contains(words) && !"\($0)".contains("secret") }
  }

  @Test(
    "a server over a network is verified unless the connection string says otherwise, and then a warning names that",
    arguments: [
      ("postgresql://u@db1,db2/p", "verify-full", false),
      ("postgresql://u@127.0.0.1,192.0.2.1/p", "verify-full", false),
      ("postgresql://u@db/p?sslmode=require", "require", true),
      ("postgresql://u@db/p?sslmode=disable", "disable", true),
      ("postgresql://u@localhost/p?hostaddr=192.0.2.1", "verify-full", false),
      ("postgresql://u@127.0.0.1:1,[::1]:2/p", nil, false), ("postgresql://u@/p?host=/run/postgresql", nil, false),
      ("postgresql://u@db/p?hostaddr=127.0.0.1", nil, false), ("postgresql:///p", nil, false),
    ] as [(String, String?, Bool)])
  func verifiesServers(uri: String, mode: String?, isWarned: Bool) throws {
    let target = try PostgreSQLTarget(uri: uri)
    #expect(target.parameters.first { $0.keyword == "sslmode" }?.value == mode)
    #expect(target.tlsWarning?.contains("sslmode=\(mode ?? "")") == (isWarned ? true : nil))
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
