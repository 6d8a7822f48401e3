import PrismBase
import PrismConfig
import PrismControl
import PrismPacket
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

@testable import PrismEngine

@Suite("Questions for the server's records") struct PullTests {
  private static let (price, setting) = (RecordTableName("price")!, RecordTableName("setting")!)
  private static let shop = NamespaceName("shop")!

  private static func snapshot(
    _ tables: [RecordTable] = [RecordTable(price, direction: .down, scope: .fleet)],
    _ change: (inout NamespaceConfiguration) -> Void = { _ in }
  ) -> Snapshot {
    DeliveryRig.snapshot {
      $0.records = tables
      change(&$0)
    }
  }

  private static func whole(
    _ sequence: Int64, _ ids: [String], _ fields: String = "{}", store: Int64? = nil
  ) -> ScriptedDownloads.Answer {
    let records = ids.map {
      DownLine.record(DownRecord(id: RecordID($0)!, fields: Array(fields.utf8), time: 1))
    }
    let mark = store.map { StoreMark(id: $0) }
    return .lines([.head(DownHead(isFull: true, sequence: sequence, count: ids.count, store: mark))] + records)
  }

  private static func nothing(_ sequence: Int64) -> ScriptedDownloads.Answer {
    .lines([.head(DownHead(isFull: false, sequence: sequence, count: 0))], encoding: .zstd)
  }

  private static func operation(_ sequence: Int64, _ table: RecordTableName, _ id: String, after: String? = nil)
    -> DownLine
  {
    .operation(
      DownOperation(
        sequence: sequence, op: "o\(sequence)", table: table, id: RecordID(id)!, kind: .insert,
        fields: Array("{}".utf8), dependsOn: after, time: 1))
  }

  /// A whole table at first, and nothing new from then on.
  private static func server(_ ids: [String] = ["a", "b"]) -> ScriptedDownloads.Script {
    { question in question.after.map { nothing($0) } ?? whole(7, ids) }
  }

  private static func ids(_ engine: Engine, _ table: RecordTable) async -> [String] {
    let request = RecordRequest(namespace: shop, table: table, action: .list(after: nil, limit: 1000), bytes: 10)
    guard case .list(let records, _, _)? = await ask(engine, request) else { return ["?"] }
    return records.map(\.id.text)
  }

  private static func ask(_ engine: Engine, _ request: RecordRequest) async -> RecordAnswer? {
    var batch = ReportBatch(
      namespace: request.namespace, userID: 1000, context: CommonContext(members: []),
      quota: StoreQuota(bytesMax: 1 << 30, evictsOldest: false))
    batch.record = request
    guard case .committed(let outcomes) = await engine.sink.append([batch]) else { return nil }
    return outcomes.first?.record?.answer
  }

  private static func put(_ engine: Engine, _ table: RecordTable, _ id: String, _ fields: JSONValue) async {
    let request = RecordRequest(
      namespace: shop, table: table, action: .put(RecordID(id)!, fields), bytes: 10)
    _ = await ask(engine, request)
  }

  @Test("tables are asked for at the start, at each interval, and after what they hold", arguments: Cipher.allCases)
  func interval(cipher: Cipher) async throws {
    guard cipher.keyBytes == 16 else { return }
    let rig = DeliveryRig()
    let downloads = rig.downloads(Self.server())
    let engine = try await rig.engine(Self.snapshot { $0.cipher = cipher }, downloads: downloads)
    let table = RecordTable(Self.price, direction: .down)
    #expect(await rig.runs { await Self.ids(engine, table) == ["a", "b"] })
    let begin = rig.time.uptime
    #expect(await rig.runs { downloads.questions.count == 3 })
    #expect(rig.time.uptime - begin >= .seconds(590))
    #expect(downloads.questions.map(\.after) == [nil, 7, 7])
    #expect(Set(downloads.questions.map(\.packetID)).count == 3)
    #expect(downloads.questions.allSatisfy { $0.deviceID == "device" && $0.table == Self.price })
    await engine.stop()
  }

  @Test(
    "a device that may be asked looks for questions more often, and on a metered network by the interval of records")
  func asked() async throws {
    for (kind, seconds) in [(NetworkStatus.Kind.unmetered, 30), (.metered, 300)] {
      let rig = DeliveryRig(network: kind)
      let downloads = rig.downloads(Self.server())
      let engine = try await rig.engine(Self.snapshot { $0.askInterval = .seconds(30) }, downloads: downloads)
      #expect(await rig.runs { downloads.questions.count == 1 })
      let begin = rig.time.uptime
      #expect(await rig.runs { downloads.questions.count == 3 })
      let waited = rig.time.uptime - begin
      #expect((.seconds(2 * seconds - 10)...Duration.seconds(2 * seconds + 10)).contains(waited), "\(kind): \(waited)")
      await engine.stop()
    }
  }

  @Test("a namespace without rows asks again though its collector failed until the circuit opened")
  func openCircuit() async throws {
    let rig = DeliveryRig(ScriptedTransport { ScriptedTransport.answer(500, to: $0) })
    let downloads = rig.downloads(Self.server())
    let engine = try await rig.engine(Self.snapshot { $0.recordInterval = .seconds(60) }, downloads: downloads)
    await rig.report(1...1, to: engine)
    #expect(await rig.runs { await engine.pipelines[Self.shop]?.status.circuitIsOpen == true })
    _ = try await engine.parts.store.remove(.all, of: Self.shop)
    let before = downloads.questions.count
    #expect(await rig.runs { downloads.questions.count >= before + 2 })
    #expect(await engine.pipelines[Self.shop]?.status.circuitIsOpen == false, "an answer is the end of failures")
    await engine.stop()
  }

  @Test("the network's return, a flush and a newer number in an upload's answer ask at once") func reasons()
    async throws
  {
    let rig = DeliveryRig(network: .none)
    let downloads = rig.downloads(Self.server())
    let own = RecordTable(RecordTableName("own")!)
    let tables = [RecordTable(Self.price, direction: .down), own]
    // No question in this test is due by the interval.
    let engine = try await rig.engine(
      Self.snapshot(tables) { $0.recordInterval = .seconds(86_400) }, downloads: downloads)
    rig.time.advance(by: .seconds(600))
    #expect(downloads.questions.isEmpty)
    rig.network.set(.unmetered)
    #expect(await rig.runs { downloads.questions.count == 1 })
    #expect(await engine.flush(Self.shop))
    #expect(await rig.runs { downloads.questions.count == 2 })
    rig.transport.set { request in
      var headers = ScriptedTransport.receipt(for: request)
      headers["prism-records-version"] = "12"
      return ScriptedTransport.answer(200, headers, to: request)
    }
    await Self.put(engine, own, "x", [:])
    #expect(await engine.flush(Self.shop))
    // One for the flush, and one for the number in the answer.
    #expect(await rig.runs { rig.transport.requests.count == 1 && downloads.questions.count >= 4 })
    await Self.put(engine, own, "y", [:])
    #expect(await engine.flush(Self.shop))
    #expect(await rig.runs { rig.transport.requests.count == 2 && downloads.questions.count == 5 })
    rig.time.advance(by: .seconds(3600))
    #expect(downloads.questions.count == 5, "the same number is not newer")
    await engine.stop()
  }

  @Test("a both table is asked for before its changes leave, and they stay while that fails") func pullThenPush()
    async throws
  {
    let rig = DeliveryRig()
    let table = RecordTable(Self.setting, direction: .both, onConflict: .remote)
    let downloads = rig.downloads { _ in .status(503) }
    let engine = try await rig.engine(Self.snapshot([table]), downloads: downloads)
    await Self.put(engine, table, "a", ["n": 1])
    #expect(await rig.runs { downloads.questions.count > 5 })
    #expect(rig.transport.requests.isEmpty)
    let transport = rig.transport
    downloads.set { question in
      #expect(transport.requests.isEmpty || question.after != nil, "first the question")
      return question.after.map { Self.nothing($0) } ?? Self.whole(3, [])
    }
    #expect(await rig.runs { rig.transport.requests.count == 1 })
    #expect(await engine.parts.store.records.tables(of: Self.shop).first?.ledger[.waiting] == 0)
    await engine.stop()
  }

  @Test("an operation that waits for one of another table is executed in the same round") func dependencies()
    async throws
  {
    let rig = DeliveryRig()
    let (first, second) = (RecordTableName("a")!, RecordTableName("b")!)
    let tables = [RecordTable(first, direction: .down), RecordTable(second, direction: .down)]
    // Each table's second operation needs the other's.
    let log = [
      Self.operation(2, first, "w"), Self.operation(3, second, "x", after: "o2"),
      Self.operation(4, first, "y", after: "o3"), Self.operation(5, second, "z", after: "o4"),
    ]
    let downloads = rig.downloads { question in
      guard let after = question.after else { return Self.whole(1, []) }
      let operations = log.filter {
        if case .operation(let one) = $0 { one.table == question.table && one.sequence > after } else { false }
      }
      return operations.isEmpty ? Self.nothing(after) : .lines(operations)
    }
    let engine = try await rig.engine(Self.snapshot(tables), downloads: downloads)
    #expect(await rig.runs { downloads.questions.count >= 2 })
    #expect(await rig.runs { await Self.ids(engine, tables[1]) == ["x", "z"] })
    #expect(await Self.ids(engine, tables[0]) == ["w", "y"])
    // One round for the whole tables, and one for the operations.
    #expect(downloads.questions.filter { $0.after != nil }.count <= 6)
    await engine.stop()
  }

  @Test(
    "an answer that is not the one to the question changes nothing, and is asked for again with growing pauses",
    arguments: [0, 1, 2, 3, 4, 5, 6])
  func wrongAnswers(number: Int) async throws {
    let rig = DeliveryRig()
    let lines = [
      DownLine.head(DownHead(isFull: true, sequence: 9, count: 1)),
      .record(DownRecord(id: RecordID("evil")!, fields: Array("{}".utf8), time: 1)),
    ]
    let wrong: [ScriptedDownloads.Answer] = [
      .foreign(lines), .status(200, body: "<html>"), .status(204), .status(500), .failure(.reset),
      .lines([lines[1]]), .lines([lines[0], lines[1], lines[1]]),
    ]
    let downloads = rig.downloads { _ in wrong[number] }
    let table = RecordTable(Self.price, direction: .down)
    let engine = try await rig.engine(Self.snapshot([table]), downloads: downloads)
    #expect(await rig.runs(step: .seconds(5)) { downloads.questions.count >= 4 })
    #expect(await Self.ids(engine, table) == [])
    #expect(await engine.pipelines[Self.shop]?.status.pulls.faults[Self.price] != nil)
    downloads.set(Self.server())
    #expect(await rig.runs(step: .seconds(5)) { await Self.ids(engine, table) == ["a", "b"] })
    #expect(await rig.runs { await engine.pipelines[Self.shop]?.status.pulls.faults.isEmpty == true })
    await engine.stop()
  }

  @Test("a table of more records than maxRecord is not taken, and status names the key") func tooMany() async throws {
    let rig = DeliveryRig()
    let downloads = rig.downloads(Self.server(["a", "b", "c"]))
    let table = RecordTable(Self.price, direction: .down, maxRecord: 2)
    let engine = try await rig.engine(Self.snapshot([table]), downloads: downloads)
    #expect(await rig.runs { await engine.pipelines[Self.shop]?.status.pulls.faults[Self.price] != nil })
    let fault = await engine.pipelines[Self.shop]?.status.pulls.faults[Self.price]
    #expect(fault == "the server has 3 records in price, and its maxRecord is 2: raise it")
    #expect(await Self.ids(engine, table) == [])
    await engine.stop()
  }

  @Test("a server that went back is asked for everything again") func wentBack() async throws {
    let rig = DeliveryRig()
    let downloads = rig.downloads(Self.server())
    let table = RecordTable(Self.price, direction: .down)
    let engine = try await rig.engine(Self.snapshot([table]), downloads: downloads)
    #expect(await rig.runs { await Self.ids(engine, table) == ["a", "b"] })
    downloads.set { $0.after == nil ? Self.whole(2, ["old"]) : Self.nothing(2) }
    #expect(await rig.runs(step: .seconds(5)) { await Self.ids(engine, table) == ["a", "b", "old"] })
    await engine.stop()
  }

  @Test("another store deletes nothing until an operator accepts it") func otherStore() async throws {
    let rig = DeliveryRig()
    let downloads = rig.downloads { $0.after.map { Self.nothing($0) } ?? Self.whole(7, ["a", "b"], store: 1) }
    let table = RecordTable(Self.price, direction: .down)
    let engine = try await rig.engine(Self.snapshot([table]), downloads: downloads)
    #expect(await rig.runs { await Self.ids(engine, table) == ["a", "b"] })
    downloads.set { _ in Self.whole(3, ["c"], store: 2) }
    #expect(await rig.runs(step: .seconds(5)) { await Self.ids(engine, table) == ["a", "b", "c"] })
    let known = await engine.parts.store.records.store(of: Self.shop)
    #expect(known?.trusted == StoreMark(id: 1) && known?.latest == StoreMark(id: 2) && known?.kept == [Self.price: 2])
    let pipeline = try #require(await engine.pipelines[Self.shop])
    #expect(try await pipeline.acceptStore(StoreMark(id: 1)) == .isOther(StoreMark(id: 2)))
    #expect(try await pipeline.acceptStore() == .accepted(StoreMark(id: 2), isNews: true))
    #expect(await rig.runs(step: .seconds(5)) { await Self.ids(engine, table) == ["c"] })
    #expect(try await pipeline.acceptStore() == .accepted(StoreMark(id: 2), isNews: false))
    await engine.stop()
  }

  @Test("records that one store has are sent again when a receipt names another one") func sentAgain() async throws {
    let rig = DeliveryRig()
    let table = RecordTable(Self.setting)
    let downloads = rig.downloads { _ in .status(404) }
    let engine = try await rig.engine(Self.snapshot([table]), downloads: downloads)
    rig.transport.set { Self.accept($0, "0000000000000001.0") }
    await Self.put(engine, table, "a", ["n": 1])
    #expect(await rig.runs { await Self.ledger(engine) == [1, 1] })
    rig.transport.set { Self.accept($0, "0000000000000002.0") }
    await Self.put(engine, table, "b", ["n": 2])
    #expect(await rig.runs(step: .seconds(5)) { await Self.ledger(engine) == [4, 4] }, "a and b, once more")
    let posted = rig.transport.requests.count
    rig.time.advance(by: .seconds(3600))
    #expect(rig.transport.requests.count == posted, "and no more")
    await engine.stop()
  }

  @Test("packets of reports name the store of the last receipt, also without a table of records") func namedStore()
    async throws
  {
    let rig = DeliveryRig()
    let engine = try await rig.engine()
    var named: [StoreMark?] = []
    for (number, store) in [(1, "0000000000000001.0"), (2, "0000000000000002.0"), (3, "0000000000000002.0")] {
      rig.transport.set { Self.accept($0, store) }
      await rig.report([number], to: engine)
      #expect(await rig.runs { rig.transport.requests.count == number })
      named.append(rig.transport.requests.last?.packetHeaders.flatMap { StoreMark(ofLedger: $0.ledger) })
      let mark = StoreMark(store)
      #expect(await rig.runs { await engine.parts.store.records.store(of: Self.shop)?.latest == mark })
    }
    #expect(named == [nil, StoreMark(id: 1), StoreMark(id: 2)])
    #expect(await engine.parts.store.records.store(of: Self.shop)?.isTrusted == true, "there is no record to delete")
    await engine.stop()
  }

  /// A receipt that names a store.
  private static func accept(_ request: TransferRequest, _ store: String) -> PostAnswer {
    let body = #"{"duplicate":false,"store":"\#(store)"}"#
    return ScriptedTransport.answer(
      200, ScriptedTransport.receipt(for: request, body: body), body: body, to: request)
  }

  /// Changes that were put, and those that were confirmed.
  private static func ledger(_ engine: Engine) async -> [Int] {
    let ledger = await engine.parts.store.records.tables(of: shop).first?.ledger ?? Ledger()
    return [ledger.stored, ledger[.delivered]]
  }

  @Test("on metered networks an answer has the rest of the budget, its bytes count, and onlyWifi waits") func metered()
    async throws
  {
    let rig = DeliveryRig(network: .metered)
    let downloads = rig.downloads(Self.server())
    let tables = [
      RecordTable(Self.price, direction: .down), RecordTable(RecordTableName("big")!, direction: .down, onlyWifi: true),
    ]
    let engine = try await rig.engine(Self.snapshot(tables) { $0.maxFlowBytes = 1_048_576 }, downloads: downloads)
    #expect(await rig.runs { downloads.questions.count == 1 })
    #expect(await rig.runs { await (engine.pipelines[Self.shop]?.status.flow.usedBytes ?? 0) > 600 })
    #expect(downloads.bytesMax == [1_048_576])
    #expect(downloads.questions.map(\.table) == [Self.price])
    rig.network.set(.unmetered)
    #expect(await rig.runs { downloads.questions.contains { $0.table.text == "big" } })
    await engine.stop()
  }

  @Test("a conflict is news for the report about it") func clashes() async throws {
    let rig = DeliveryRig()
    let table = RecordTable(Self.setting, direction: .both, onConflict: .remote)
    let downloads = rig.downloads { question in
      question.after == nil ? Self.whole(1, ["a"]) : Self.nothing(1)
    }
    let engine = try await rig.engine(Self.snapshot([table]), downloads: downloads)
    #expect(await rig.runs { await Self.ids(engine, table) == ["a"] })
    await Self.put(engine, table, "a", ["n": 1])
    downloads.set { question in
      let change = DownOperation(
        sequence: 2, op: "o2", table: Self.setting, id: RecordID("a")!, kind: .update,
        fields: Array(#"{"n":2}"#.utf8), time: 5)
      return question.after == 1 ? .lines([.operation(change)]) : Self.nothing(2)
    }
    var news = engine.clashes.makeAsyncIterator()
    #expect(await rig.runs { await engine.pipelines[Self.shop]?.status.pulls.counters.questions[.operations] == 1 })
    let clash = await news.next()
    #expect(clash?.namespace == Self.shop && clash?.clash.id.text == "a" && clash?.clash.keptLocal == false)
    #expect(clash?.clash.local == Array(#"{"n":1}"#.utf8) && clash?.clash.remote == Array(#"{"n":2}"#.utf8))
    #expect(rig.transport.requests.isEmpty, "the server's change holds: there is nothing to send")
    await engine.stop()
  }
}
