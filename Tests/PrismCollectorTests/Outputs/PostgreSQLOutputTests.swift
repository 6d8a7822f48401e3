import PrismTestSupport
import Testing

@testable import PrismCollector
@testable import PrismOutputs

@Suite("The output postgresql, on a real server", .timeLimit(.minutes(3)))
struct PostgreSQLOutputTests {
  private static func reports(_ numbers: [Int], namespace: String = "shop", payload: [UInt8]? = nil) async throws
    -> [StoredReport]
  {
    let store = MemoryPacketStore()
    _ = try await store.take(StoreRig.packet(numbers, namespace: namespace, payload: payload))
    return try await store.outputSource("x").next(after: 0, limit: 10_000)
  }

  private static func output(_ rig: PostgreSQLRig, schema: String = "prism") -> PostgreSQLOutput {
    PostgreSQLOutput(.init(uri: rig.server.uri(rig.database), schema: schema))
  }

  @Test("each report is a row of its namespace's table, whole, and once however often its page comes")
  func rows() async throws {
    let rig = try await PostgreSQLRig()
    var reports = try await Self.reports([1, 2, 3]) + Self.reports([4], namespace: "a-b_1", payload: [0, 0xFF, 10])
    for index in reports.indices { reports[index].id = Int64(index) + 1 }
    (reports[0].createdTime, reports[1].createdTime) = (nil, .max)
    reports[1].meta = Array(#"{"t":"`'\"\\\u0000ü{},NULL\n","n":1e400,"n":2}"#.utf8)
    reports[2].isDamaged = true
    for _ in 0..<2 {
      let output = Self.output(rig)
      #expect(try await output.deliver(reports).isEmpty)
      #expect(try await output.deliver(Array(reports[1...])).isEmpty, "the page has grown or shrunk")
      await output.close()
    }
    let columns =
      "id, device, type, report_id, created IS NULL, coalesce(meta::text, '-'), coalesce(encode(payload, 'hex'), '-')"
    let rows = try await rig.sql("SELECT \(columns) FROM prism.shop ORDER BY id")
    #expect(rows.map { $0[0] } == ["1", "2", "3"] && rows.map { $0[4] } == ["t", "t", "f"])
    for (row, report) in zip(rows, reports) {
      #expect(row[1] == report.device && row[2] == report.type && row[3] == report.reportID)
      #expect(row[5] == String(decoding: report.meta, as: UTF8.self))
    }
    #expect(try await rig.value("SELECT encode(payload, 'hex') FROM prism.\"a-b_1\"") == "00ff0a")
    let created = try #require(reports[3].createdTime)
    #expect(
      try await rig.value("SELECT round(extract(epoch FROM created) * 1000) FROM prism.\"a-b_1\"") == "\(created)")
  }

  @Test("a namespace may have the name that PostgreSQL would give to a key of another one's table")
  func namesOfKeys() async throws {
    let (rig, names) = (try await PostgreSQLRig(), ["shop", "shop_pkey", "shop_pkey1", "shop_created"])
    let output = Self.output(rig)
    for name in names { #expect(try await output.deliver(Self.reports([1], namespace: name)).isEmpty) }
    for name in names { #expect(try await rig.value("SELECT count(*) FROM prism.\(name)") == "1") }
    await output.close()
  }

  @Test(
    "reports of one id are rows each; what a unique key of another form keeps out is refused, and not taken for delivered"
  )
  func sameIDs() async throws {
    let rig = try await PostgreSQLRig()
    var reports = try await Self.reports([1, 2, 3])
    for index in reports.indices { reports[index].reportID = "order-1" }
    for _ in 0..<2 { #expect(try await Self.output(rig).deliver(reports).isEmpty) }
    #expect(try await rig.value("SELECT count(*) FROM prism.shop") == "3")
    _ = try await rig.sql(
      """
      TRUNCATE prism.shop;
      ALTER TABLE prism.shop DROP CONSTRAINT "shop.key", ADD PRIMARY KEY (report_id, device, kind)
      """)
    for _ in 0..<2 {
      let refused = try await Self.output(rig).deliver(reports)
      let kept = try await rig.value("SELECT id FROM prism.shop")
      #expect(refused.map(\.id) == reports.map(\.id).filter { "\($0)" != kept } && refused.count == 2)
      #expect(refused[0].cause.contains("unique key"))
    }
  }

  @Test("equal reports of one packet, and payloads under one meta, are rows each, once however often they come")
  func equalReports() async throws {
    let rig = try await PostgreSQLRig()
    var reports = try await Self.reports([1, 2, 3, 4])
    for index in reports.indices {
      (reports[index].meta, reports[index].reportID, reports[index].place) = (Array(#"{"n":1}"#.utf8), "", index)
    }
    (reports[2].place, reports[3].place) = (9, 9)
    (reports[2].payload, reports[3].payload) = ([1], [2])
    for page in [reports, Array(reports[1...]), reports] { #expect(try await Self.output(rig).deliver(page).isEmpty) }
    #expect(try await rig.value("SELECT count(*) FROM prism.shop") == "4")
  }

  @Test("what two collectors store of one packet is one row a report, and reports of one number are rows each")
  func collectors() async throws {
    let database = try await PostgreSQLRig()
    let packet = try StoreRig.packet(Array(1...10), namespace: "shop", payload: [7])
    for others in [[], [100, 101, 102]] {
      let rig = StoreRig()
      let store = try rig.sqlite()
      if !others.isEmpty { _ = try await store.take(StoreRig.packet(others, namespace: "shop")) }
      _ = try await store.take(packet)
      let page = try await store.outputSource("x").next(after: 0, limit: 100)
      for _ in 0..<2 { #expect(try await Self.output(database).deliver(page) == []) }
      await store.close()
    }
    let counts = try await database.sql(
      "SELECT count(*), count(DISTINCT meta->>'n'), count(DISTINCT id) FROM prism.shop")
    #expect(counts == [["13", "13", "10"]])
  }

  @Test("a report that the database can't hold is refused alone, and the others are rows")
  func refused() async throws {
    let rig = try await PostgreSQLRig()
    var reports = try await Self.reports(Array(1...9))
    reports[6].meta = Array("{".utf8)
    let refused = try await Self.output(rig).deliver(reports)
    #expect(refused.map(\.id) == [reports[6].id] && refused[0].cause.contains("22P02"))
    #expect(try await rig.value("SELECT count(*) FROM prism.shop") == "8")
  }

  @Test(
    "a table that is not there when it was made holds the output, and a namespace may be named as an index of another")
  func made() async throws {
    let rig = try await PostgreSQLRig()
    let reports = try await Self.reports([1], namespace: "shop_created") + Self.reports([2])
    #expect(try await Self.output(rig).deliver(reports).isEmpty)
    #expect(try await rig.value("SELECT count(*) FROM prism.shop_created, prism.shop") == "1")
    // It is missing within a function of its owner.
    _ = try await rig.sql(
      """
      CREATE FUNCTION missing() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO nowhere VALUES (1); RETURN NULL; END $$;
      CREATE TRIGGER missing BEFORE INSERT ON prism.shop FOR EACH ROW EXECUTE FUNCTION missing()
      """)
    let error = await #expect(throws: OutputFailure.self) { try await Self.output(rig).deliver(reports) }
    #expect("\(error!)".contains("42P01"))
  }

  @Test(
    "a trigger of its owner that raises an exception refuses one report, also at the commit",
    arguments: [
      "TRIGGER raises BEFORE INSERT ON prism.shop FOR EACH ROW",
      "CONSTRAINT TRIGGER raises AFTER INSERT ON prism.shop DEFERRABLE INITIALLY DEFERRED FOR EACH ROW",
    ])
  func raises(trigger: String) async throws {
    let rig = try await PostgreSQLRig()
    let reports = try await Self.reports(Array(1...5))
    _ = try await Self.output(rig).deliver(Array(reports.prefix(1)))
    _ = try await rig.sql(
      """
      CREATE FUNCTION raises() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF NEW.meta->>'n' = '3' THEN RAISE EXCEPTION 'no three'; END IF; RETURN NEW; END $$;
      CREATE \(trigger) EXECUTE FUNCTION raises()
      """)
    let refused = try await Self.output(rig).deliver(reports)
    #expect(refused.map(\.id) == [reports[2].id] && refused[0].cause.hasPrefix("PostgreSQL P0001"))
    #expect(try await rig.value("SELECT count(*) FROM prism.shop") == "4")
  }

  @Test("a CHECK of its owner refuses one report, and a missing partition holds all")
  func checked() async throws {
    let rig = try await PostgreSQLRig()
    let reports = try await Self.reports(Array(1...5))
    _ = try await Self.output(rig).deliver(Array(reports.prefix(1)))
    _ = try await rig.sql("ALTER TABLE prism.shop ADD CHECK (meta->>'n' <> '3')")
    let refused = try await Self.output(rig).deliver(reports)
    #expect(refused.map(\.id) == [reports[2].id] && refused[0].cause == "PostgreSQL 23514: shop_meta_check")
    #expect(try await rig.value("SELECT count(*) FROM prism.shop") == "4")
    _ = try await rig.sql(
      "CREATE TABLE prism.parted (LIKE prism.shop INCLUDING DEFAULTS) PARTITION BY RANGE (received)")
    let others = try await Self.reports([1], namespace: "parted")
    let error = await #expect(throws: OutputFailure.self) { try await Self.output(rig).deliver(others) }
    #expect("\(error!)".contains("23514"))
  }

  @Test(
    "a missing right, another form of the table and a server that is not there hold the output, and nothing is lost")
  func holds() async throws {
    let rig = try await PostgreSQLRig()
    let reports = try await Self.reports([1])
    let role = "reader_\(rig.database)"
    _ = try await rig.sql("CREATE SCHEMA other; CREATE TABLE other.shop (id text); CREATE ROLE \(role) LOGIN")
    let outputs: [(PostgreSQLOutput, String)] = [
      (Self.output(rig, schema: "other"), "42703"),
      (PostgreSQLOutput(.init(uri: rig.server.uri(rig.database, user: role))), "42501"),
      (PostgreSQLOutput(.init(uri: "postgresql://prism@127.0.0.1:1/prism")), "is not reached"),
      (PostgreSQLOutput(.init(uri: "postgresql://prism:secret@127.0.0.1/prism")), "holds a password"),
    ]
    for (output, words) in outputs {
      let failure = await #expect(throws: OutputFailure.self) { try await output.deliver(reports) }
      #expect(failure?.description.contains(words) == true, "\(failure?.description ?? "")")
      #expect(failure?.description.contains("secret") == false && failure?.taken == 0)
    }
    _ = try await rig.sql("DROP TABLE other.shop")
    #expect(try await outputs[0].0.deliver(reports).isEmpty)
    #expect(try await rig.value("SELECT count(*) FROM other.shop") == "1")
  }
}
