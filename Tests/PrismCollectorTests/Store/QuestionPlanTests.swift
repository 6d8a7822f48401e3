import PrismBase
import PrismSQLite
import PrismTestSupport
import Testing

@testable import PrismCollector

/// How the stores find what the page asks for: by an index, so that a question costs what it reads, and not what there is.
@Suite("Plans of the page's questions")
struct QuestionPlanTests {
  private static func filter(_ change: (inout ReportFilter) -> Void = { _ in }) -> ReportFilter {
    var filter = ReportFilter()
    (filter.after, filter.before) = (100, 20_000)
    change(&filter)
    return filter
  }

  // MARK: SQLite

  private enum Plan: String, SQLiteColumn { case id, parent, notused, detail }

  @Test("SQLite counts within a range of ids, sorts nothing, and reads no other table", arguments: [false, true])
  func sqlite(readsMetas: Bool) async throws {
    let rig = StoreRig()
    let store = try rig.sqlite()
    _ = try await store.take(StoreRig.packet(Array(1...50)))
    let opened = try ReportConnection(path: rig.path + "/collector.db", vfs: nil, settings: "")
    let filter = Self.filter { ($0.type, $0.device, $0.since) = ("t", "d", 5) }
    let question = SQLiteQueries.question(filter, try #require(filter.ids), readsMetas: readsMetas)
    var plan: [String] = []
    try opened.connection.prepare("EXPLAIN QUERY PLAN \(question)")
      .forEachRow(of: Plan.self) { plan.append($0.text(.detail)) }
    #expect(plan == ["SEARCH r USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"])
    await store.close()
  }

  // MARK: PostgreSQL

  /// A store with 30,000 reports of the day before yesterday, whose day is closed.
  private func closedDay() async throws -> (PostgreSQLRig, PostgreSQLPacketStore, day: String) {
    let rig = try await PostgreSQLRig()
    let store = try rig.store()
    let day = try #require(
      try await rig.value("SELECT to_char((now() AT TIME ZONE 'UTC')::date - 2, 'YYYYMMDD')"))
    _ = try await store.take(StoreRig.packet([1]))
    _ = try await rig.sql(
      """
      DO $$ BEGIN EXECUTE format('CREATE TABLE reports_\(day) PARTITION OF reports FOR VALUES FROM (%L) TO (%L)',
        (now() AT TIME ZONE 'UTC')::date - 2 || ' 00:00+00', (now() AT TIME ZONE 'UTC')::date - 1 || ' 00:00+00'); END $$;
      INSERT INTO streams (device, namespace, kind, packets, received)
        SELECT 'd' || g, 'prism', 'm', 1, now() FROM generate_series(1, 300) g;
      INSERT INTO reports (received, stream, packet, id, chain_broken, type, report_id, meta)
        SELECT ((now() AT TIME ZONE 'UTC')::date - 2)::timestamp AT TIME ZONE 'UTC' + g * interval '2 seconds', g % 300 + 1,
          gen_random_uuid(), g, false, 't' || g % 100, 'r' || g, '{"ms":1}' FROM generate_series(1, 30000) g;
      INSERT INTO days VALUES ((now() AT TIME ZONE 'UTC')::date - 2, 0)
      """)
    while try await store.maintain() {}
    _ = try await rig.sql("ANALYZE")
    return (rig, store, day)
  }

  private func plan(
    _ rig: PostgreSQLRig, _ sql: String, _ values: [String?], byIndex: Bool = false
  ) throws -> String {
    let target = try PostgreSQLTarget(uri: rig.server.uri(rig.database))
    let setup = PostgreSQLSetup(target: target, deadline: .seconds(10))
    let connection = try (byIndex ? setup.byIndex : setup).connect()
    let rows = try connection.query("EXPLAIN (COSTS OFF) " + sql, values, by: Deadline(.seconds(10)))
    return (0..<rows.count).map { rows.text($0, 0) }.joined(separator: "\n")
  }

  @Test("PostgreSQL finds a type, a device and a range of ids of a day that is over by its indexes, a page and a count")
  func postgresql() async throws {
    let (rig, store, day) = try await closedDay()
    let questions: [(index: String, filter: ReportFilter)] = [
      ("id", Self.filter { ($0.after, $0.before) = (29_000, 29_200) }), ("type", Self.filter { $0.type = "t7" }),
      ("stream", Self.filter { $0.device = "d7" }),
    ]
    for (index, filter) in questions {
      let page = ReportPages.question(filter, from: filter.after + 1, to: try #require(filter.before), limit: 50)
      let count = PostgreSQLQueries.question(filter, try #require(filter.ids), bucket: 1000)
      for (sql, values) in [page, count] {
        let plan = try plan(rig, sql, values)
        #expect(plan.contains("reports_\(day)_\(index)"), "\(index)\n\(plan)")
        #expect(!plan.contains("Seq Scan on reports_\(day)"), "\(index)\n\(plan)")
      }
      #expect(!(try plan(rig, count.sql, count.values)).contains("contexts"), "a count reads no metas")
    }
    await store.close()
  }

  @Test("PostgreSQL finds the newest reports of the day that is written by its index, brought up to date")
  func newest() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store()
    _ = try await store.take(StoreRig.packet([1]))
    let table = try #require(try await rig.value("SELECT 'reports_' || to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')"))
    _ = try await rig.sql(
      """
      INSERT INTO reports (received, stream, packet, id, chain_broken, type, report_id, meta)
        SELECT now(), 1, gen_random_uuid(), g, false, 't', 'r' || g, '{"pad":"' || repeat('x', 400) || '"}'
        FROM generate_series(2000, 31999) g;
      SELECT setval('report_blocks', 100)
      """)
    var filter = ReportFilter()
    (filter.after, filter.before, filter.limit, filter.isNewestFirst) = (29_999, 31_000, 3, true)
    #expect(try await store.page(filter).map(\.reportID) == ["r30999", "r30998", "r30997"])
    #expect(try await rig.value("SELECT brin_summarize_new_values('\(table)_brin')") == "0", "the page did it")
    let yesterday = try #require(try await rig.value("SELECT (now() AT TIME ZONE 'UTC')::date - 1"))
    let question = ReportPages.question(filter, from: 30_000, to: 31_000, limit: 3, since: yesterday)
    let plan = try plan(rig, question.sql, question.values, byIndex: true)
    #expect(plan.contains("\(table)_brin") && !plan.contains("Seq Scan") && !plan.contains("Gather"), "\(plan)")
    // The reports are chosen before their common ends and their streams are read.
    #expect(plan.ranges(of: "Limit").count == 1 && plan.contains("contexts"), "\(plan)")
    let bounds = try self.plan(rig, ReportPages.bounds, [], byIndex: true)
    #expect(!bounds.contains("JIT") && bounds.contains("days_pkey"), "\(bounds)")
    await store.close()
  }
}
