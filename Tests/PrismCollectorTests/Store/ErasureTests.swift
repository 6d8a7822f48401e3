import Glibc
import PrismBase
import PrismHTTP
import PrismOutputs
import PrismPacket
import PrismProtocol
import PrismSQL
import PrismTestSupport
import Testing

@testable import PrismCollector

/// Reports are erased for good: from the answers, and from the files.
@Suite("Erasure") struct ErasureTests {
  private static let kinds: [StoreRig.Kind] = [.sqlite, .postgresql]
  private static let (secret, other) = ("customer-4711-secret", "customer-0815-stays")

  /// 300 reports of two devices; every third has the secret in a member of its own, and all of `b` in common.
  private static func fill(_ store: any PacketStore) async throws {
    for number in 0..<30 {
      let device = number % 3 == 0 ? "device-of-b" : "device-of-a"
      _ = try await store.take(
        StoreRig.packet(
          Array(number * 10..<number * 10 + 10), device: device,
          payload: number % 5 == 0 ? Array("payload of \(device)".utf8) : nil,
          common: { _ in device == "device-of-b" ? #""owner":"\#(secret)","pad":"\#(pad)""# : nil },
          members: { $0 % 3 == 0 ? #""customer":"\#(secret)""# : #""customer":"\#(other)""# }))
    }
    while try await store.maintain() {}
  }

  private static let pad = String(repeating: "p", count: 80)

  private static func reports(_ store: any PacketStore) async throws -> [StoredReport] {
    var filter = ReportFilter(scope: .everything)
    (filter.limit, filter.hasPayloads) = (1000, true)
    return try await store.page(filter)
  }

  private static func end(_ runner: ErasureRunner) async throws -> ErasureRunner.Job {
    while await runner.jobs.last?.state == .running { try await Task.sleep(for: .milliseconds(20)) }
    return try #require(await runner.jobs.last)
  }

  @Test("a field's reports are gone, the others stay as they were, and each is counted once", arguments: kinds)
  func field(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    try await Self.fill(store)
    let before = try await Self.reports(store)
    let runner = ErasureRunner(state: rig.path, fleet: .folder(rig.path), time: SystemTime(), log: rig.log)
    let text = "customer = \(Self.secret)"
    let value = try ErasedValue(MetaCondition(text))
    #expect(await runner.begin(.field(try MetaCondition(text), value), in: store, who: "me") != nil)
    let job = try await Self.end(runner)
    let kept = before.filter { !String(decoding: $0.meta, as: UTF8.self).contains(#""customer":"\#(Self.secret)""#) }
    #expect(job.state == .done && job.counts.reports == before.count - kept.count && job.counts.reports == 100)
    #expect(try await Self.reports(store) == kept)
    let packet = try StoreRig.packet([1000])
    #expect(try await store.take(packet) == .stored(chainIsBroken: false))
    #expect(try await Self.reports(store).last.map(\.id) ?? 0 > before[before.count - 1].id, "no id is given again")
    let receipt = try JSONValue(parsing: SmallFile.read(rig.path + "/erasures.ndjson"))
    #expect(value.isIn(Array(#"{"customer":"\#(Self.secret)"}"#.utf8)) && !value.text.contains(Self.secret))
    #expect(receipt["where"]?.string == value.text)
    let again = try ErasedValue(MetaCondition(erasing: value.text))
    #expect(again.isDigest && again.text == value.text && !value.isDigest)
    #expect(receipt["reports"] == 100 && receipt["sha256"]?.string == job.receipt)
    await store.close()
  }

  @Test("no byte of a device stays in the files of SQLite")
  func sqliteFiles() async throws {
    let rig = StoreRig()
    let store = try rig.sqlite()
    try await Self.fill(store)
    let words = ["device-of-b", #""owner":"\#(Self.secret)"#]
    let runner = ErasureRunner(state: rig.path, fleet: .folder(rig.path), time: SystemTime(), log: rig.log)
    #expect(try Self.count("device-of-b", in: [rig.path + "/collector.db", rig.path + "/collector.db-wal"]) > 0)
    _ = await runner.begin(.device("device-of-b"), in: store, who: "me")
    let job = try await Self.end(runner)
    #expect(job.state == .done && job.counts.reports == 100, "\(job)")
    for word in words {
      #expect(try Self.count(word, in: [rig.path + "/collector.db", rig.path + "/collector.db-wal"]) == 0)
    }
    #expect(try await Self.reports(store).count == 200)
    #expect(try await store.take(StoreRig.packet([1], device: "device-of-b")) == .stored(chainIsBroken: false))
    await store.close()
  }

  @Test("no byte of a report, and no id of its device, stays in what is kept of the fleet", arguments: [false, true])
  func fleet(isShared: Bool) async throws {
    let (rig, database) = (StoreRig(), isShared ? try await PostgreSQLRig() : nil)
    let store = if let database { try database.store() } else { try rig.sqlite() as any PacketStore }
    try await Self.fill(store)
    let fleet =
      if let database { try FleetDatabase.server(PostgreSQLTarget(uri: database.server.uri(database.database))) } else {
        FleetDatabase.folder(rig.path)
      }
    let secret = Array(String(repeating: Self.secret, count: 40).utf8)
    try FleetSession(fleet).write { statements in
      try statements.run("INSERT INTO dictionaries VALUES ($1, $2, $3, $4)", ["prism", Int64(7), Int64(1), secret])
      try statements.run(
        "INSERT INTO notices VALUES ($1, 'r', 'crash', 1, $2, 'delivered', 1, 1, NULL)",
        ["n", "crash of \(Self.secret)"])
      try statements.run(
        "INSERT INTO jobs VALUES ('j', 'prism', 'me', $1, '{}', 1, 2, 3, 4, 'done', 5)", ["device = device-of-b"])
      try Self.putTexts(statements)
      for table in [
        "job_devices VALUES ('j', $1, 'done', NULL, NULL, 1)", "device_facts VALUES ($1, 'p', 'a', '1', NULL, 1)",
      ] {
        try statements.run("INSERT INTO \(table)", ["device-of-b"])
      }
    }
    let runner = ErasureRunner(state: rig.path, fleet: fleet, time: SystemTime(), log: rig.log)
    _ = await runner.begin(.device("device-of-b"), in: store, who: "me")
    #expect(try await Self.end(runner).state == .done)
    for word in ["device-of-b", "crash of \(Self.secret)", String(repeating: Self.secret, count: 3)] {
      if let database {
        #expect(try await Self.tables(with: word, database) == [], "\(word)")
      } else {
        #expect(try Self.count(word, in: ["", "-wal"].map { rig.path + "/fleet.db" + $0 }) == 0, "\(word)")
      }
    }
    #expect(
      try FleetSession(fleet).read { try $0.texts("SELECT expression FROM jobs ORDER BY id") } == [
        ["erased"], ["tag.region = eu"], ["erased"],
      ])
    #expect(try Self.comment(in: fleet) == "see erased, not a-device-of-c")
    await store.close()
  }

  private static func putTexts(_ statements: SQLStatements) throws {
    for (id, expression) in [
      ("k", "tag.region = eu"), ("l", "seen > 1d or not (lost = 1 and device = \"device-of-b\")"),
    ] {
      try statements.run(
        "INSERT INTO jobs VALUES ($1, 'prism', 'me', $2, $3, 1, 2, 3, 4, 'done', 5)",
        [id, expression, #"{"command":"erase","args":{"where":"device = device-of-b"}}"#])
    }
    var facts = CrashFacts()
    facts.add(.init(text: "see device-of-b, not a-device-of-c", who: "me", time: 1))
    try statements.run(
      "INSERT INTO crash_states VALUES ('f', 'open', 'me', 1, 1, NULL, $1, NULL)", [facts.controlJSON.text])
  }

  private static func comment(in fleet: FleetDatabase) throws -> String? {
    let facts = try FleetSession(fleet).read { try $0.texts("SELECT facts FROM crash_states") }
    return facts.first.flatMap { CrashFacts(text: $0[0]).comments.first?.text }
  }

  @Test(
    "a value is erased from what operators wrote where it is a word of its own",
    arguments: [
      ("is it C-17?", "is it erased?"), ("C-17", "erased"),
      ("#C-17/C-17: AC-17, C-171", "#erased/erased: AC-17, C-171"),
      ("c-17", "c-17"),
    ])
  func words(comment: String, left: String) async throws {
    let rig = StoreRig()
    let fleet = FleetDatabase.folder(rig.path)
    var facts = CrashFacts()
    facts.add(.init(text: comment, who: "me", time: 1))
    try FleetSession(fleet).write { [facts] statements in
      _ = try statements.run(
        "INSERT INTO crash_states VALUES ('f', 'open', 'me', 1, 1, $2, $1, NULL)", [facts.controlJSON.text, comment])
      _ = try statements.run("INSERT INTO device_facts VALUES ('d', 'shop', $1, $1, NULL, 1)", [comment])
    }
    let condition = try MetaCondition("customer = C-17")
    try FleetErasure.run(.field(condition, ErasedValue(condition)), in: fleet)
    #expect(try Self.comment(in: fleet) == left)
    let texts = try FleetSession(fleet).read {
      try $0.texts("SELECT build FROM crash_states") + $0.texts("SELECT app, version FROM device_facts")
    }
    #expect(texts == [[left], [left, left]])
    #expect(try DeviceExpression("not (lost = 1 and device = \"e\")").names("e"))
    for other in ["tag.region = eu", "device = ee", "device = e*", "tag.device = e"] {
      #expect(try !DeviceExpression(other).names("e"), "\(other)")
    }
  }

  @Test("crashes of an erasure are gone from the answers at its end")
  func answers() async throws {
    let rig = try PageRig()
    _ = try await rig.collector.store.take(
      StoreRig.packet(
        [1, 2], type: CrashReport.type, members: { #""customer":"C-1\#($0)","reason":"fault of C-1\#($0)""# }))
    #expect(try await rig.json("/crashes").text.contains("fault of C-11"))
    let request = PageRig.request(
      "/api/v1/erasures", method: .post, headers: [("content-type", "application/json")],
      body: #"{"where":"customer = C-11"}"#)
    #expect(await rig.collector.answerReader(request, isOwner: true).status == 200)
    #expect(try await Self.end(rig.collector.access.page.erasures).state == .done)
    let left = try await rig.json("/crashes").text
    #expect(!left.contains("C-11") && left.contains("fault of C-12"))
    await rig.collector.close()
  }

  @Test("what another replica erased is gone from the answers of this one, a second later") func replicas() async throws
  {
    let (database, folders) = (try await PostgreSQLRig(), [TemporaryFolder(), TemporaryFolder()])
    let time = ManualTime()
    // Reports have the database's clock.
    time.stepWallClock(milliseconds: SystemTime().unixMilliseconds - time.unixMilliseconds + 60_000)
    let replicas = try folders.map { folder in
      var options = CollectorOptions(state: folder.path, keys: ["main": CollectorTests.key])
      options.store = try PostgreSQLTarget(uri: database.server.uri(database.database, user: "prism", others: []))
      return try Collector(options, time: time, log: Logger(write: { _ in }))
    }
    func ask(_ replica: Collector, _ method: HTTPRequest.Method, _ path: String, _ body: String = "") async -> String {
      let query = method == .get ? [(name: "since", value: "0")] : []
      let request = PageRig.request(
        "/api/v1" + path, query, method: method, headers: [("content-type", "application/json")], body: body)
      return String(decoding: await replica.answerReader(request, isOwner: true).body, as: UTF8.self)
    }
    _ = try await replicas[0].store.take(
      StoreRig.packet(
        [1, 2], type: CrashReport.type, members: { #""customer":"C-1\#($0)","reason":"fault of C-1\#($0)""# }))
    for replica in replicas {
      let found = await ask(replica, .get, "/crashes")
      #expect(found.contains("fault of C-11"), "\(found)")
    }
    _ = await ask(replicas[0], .post, "/erasures", #"{"where":"customer = C-11"}"#)
    #expect(try await Self.end(replicas[0].access.page.erasures).state == .done)
    time.advance(by: .seconds(1))
    for replica in replicas {
      let left = await ask(replica, .get, "/crashes")
      #expect(!left.contains("C-11") && left.contains("fault of C-12"), "\(left)")
      await replica.close()
    }
  }

  private static func count(_ word: String, in paths: [String]) throws -> Int {
    try paths.reduce(0) { count, path in
      guard access(path, F_OK) == 0 else { return count }
      let bytes = try SmallFile.read(path, bytesMax: 1 << 26)
      return count + bytes.ranges(of: Array(word.utf8)).count
    }
  }

  @Test("no byte of a device stays in the tables of PostgreSQL")
  func postgreSQLFiles() async throws {
    let rig = try await PostgreSQLRig()
    let store = try rig.store()
    try await Self.fill(store)
    #expect(try await Self.tables(with: "device-of-b", rig).count > 2)
    let folder = TemporaryFolder()
    let runner = ErasureRunner(state: folder.path, fleet: .folder(folder.path), time: SystemTime(), log: StoreRig().log)
    _ = await runner.begin(.device("device-of-b"), in: store, who: "me")
    let job = try await Self.end(runner)
    #expect(job.state == .done && job.counts.reports == 100, "\(job)")
    let left = try await Self.tables(with: "device-of-b", rig)
    #expect(left == [])
    await store.close()
  }

  /// The tables and indexes whose files have a word.
  private static func tables(with word: String, _ rig: PostgreSQLRig) async throws -> [[String]] {
    _ = try await rig.sql("CHECKPOINT")
    return try await rig.sql(
      """
      SELECT relname FROM pg_class WHERE relkind IN ('r', 't', 'i') AND oid >= 16384 AND relname !~ '^pg_stat'
        AND pg_read_binary_file(pg_relation_filepath(oid), 0, 100000000, true) LIKE '%\(word)%'::bytea
      """)
  }

  @Test("two erasures beside merges leave the reports that stay, each once, and no other one", arguments: kinds)
  func besideMerges(kind: StoreRig.Kind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind)
    for number in 0..<150 {
      let word = ["gone", "lost", "stays"][number % 3]
      _ = try await store.take(
        StoreRig.packet(Array(number * 5..<number * 5 + 5), members: { $0 % 2 == 0 ? #""w":"\#(word)""# : nil }))
    }
    let before = try await Self.reports(store)
    let runners = [0, 1].map { _ in
      let folder = StoreRig()
      return (ErasureRunner(state: folder.path, fleet: .folder(folder.path), time: SystemTime(), log: rig.log), folder)
    }
    let merging = Task { while !Task.isCancelled { _ = try? await store.maintain() } }
    for (runner, word) in zip(runners.map(\.0), ["gone", "lost"]) {
      let condition = try MetaCondition("w = \(word)")
      #expect(await runner.begin(.field(condition, try ErasedValue(condition)), in: store, who: "me") != nil)
    }
    for (runner, _) in runners { #expect(try await Self.end(runner).state == .done) }
    merging.cancel()
    await merging.value
    let stay = before.filter { report in
      let text = String(decoding: report.meta, as: UTF8.self)
      return !text.contains(#""w":"gone""#) && !text.contains(#""w":"lost""#)
    }
    #expect(try await Self.reports(store) == stay)
    await store.close()
  }

  @Test("an erasure that fails is noted for other replicas: some reports may be gone")
  func failed() async throws {
    let rig = StoreRig()
    let (store, fleet) = (try rig.sqlite(), FleetDatabase.folder(rig.path))
    await store.close()
    let runner = ErasureRunner(state: rig.path, fleet: fleet, time: SystemTime(), log: rig.log)
    #expect(await runner.begin(.device("device-of-b"), in: store, who: "me") != nil)
    #expect(try await Self.end(runner).state == .failed)
    #expect(try await NoticeStore(fleet).mark(FleetErasure.mark) == 1)
  }

  @Test("one erasure runs at a time")
  func refused() async throws {
    let (folder, store) = (TemporaryFolder(), MemoryPacketStore())
    let runner = ErasureRunner(state: folder.path, fleet: .folder(folder.path), time: SystemTime(), log: StoreRig().log)
    #expect(await runner.begin(.device("a"), in: store, who: "me") != nil)
    #expect(await runner.begin(.device("b"), in: store, who: "me") == nil)
    await store.close()
    #expect(try await Self.end(runner).state == .done)
    #expect(await runner.begin(.device("b"), in: store, who: "me")?.id == 2)
    await store.close()
  }
}
