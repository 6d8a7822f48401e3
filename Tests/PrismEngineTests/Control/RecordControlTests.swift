import PrismAdmission
import PrismBase
import PrismConfig
import PrismControl
import PrismPacket
import PrismProtocol
import PrismStore
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismEngine

@Suite("Control: records in flush, explain and the dead letters")
struct RecordControlTests {
  private static let (shop, part, node) = (NamespaceName("shop")!, RecordTableName("part")!, RecordTableName("node")!)

  private struct Rig {
    let delivery: DeliveryRig
    let engine: Engine
    let handler: ControlHandler

    init(
      _ transport: ScriptedTransport = ScriptedTransport(), network: NetworkStatus.Kind = .unmetered,
      recordInterval: Duration = .seconds(300)
    ) async throws {
      delivery = DeliveryRig(transport, network: network)
      engine = try await delivery.engine(RecordControlTests.snapshot { $0.recordInterval = recordInterval })
      handler = ControlHandler(engine: engine, version: "1", configuration: RigFiles()) { ProcessFigures() }
    }

    func put(_ id: String, _ fields: JSONValue = ["n": 1], in table: RecordTable) async {
      var batch = ReportBatch(
        namespace: shop, userID: 1, context: CommonContext(members: []),
        quota: StoreQuota(bytesMax: .max, evictsOldest: false))
      batch.record = RecordRequest(
        namespace: shop, table: table, action: .put(RecordID(id)!, fields), bytes: 10)
      _ = await engine.sink.append([batch])
    }

    func ledger(_ table: RecordTableName) async -> Ledger {
      await engine.parts.store.records.tables(of: shop).first { $0.name == table }?.ledger ?? Ledger()
    }

    func ask(_ command: ControlRequest.Command, _ arguments: JSONValue) async -> JSONValue? {
      var last: JSONValue?
      let caller = ControlCaller(userID: 0, processID: 42, role: .full)
      for await answer in handler.handle(ControlRequest(command, arguments.object ?? []), from: caller) {
        last = answer
      }
      return last
    }

    /// The last answer of a flush, while the time goes on for 6 minutes at most.
    func flushed(_ arguments: JSONValue) async throws -> JSONValue? {
      let ended = Mutex<JSONValue?>(nil)
      let task = Task {
        let last = await ask(.flush, arguments)
        ended.withLock { $0 = last }
      }
      try #require(await delivery.runs(step: .milliseconds(50)) { ended.withLock { $0 != nil } })
      await task.value
      return ended.withLock { $0 }
    }

    func explained() async -> [String] {
      let text = await ask(.explain, ["namespace": "shop"])?["text"]?.string ?? ""
      return text.split(separator: "\n").filter { $0.contains(" records: ") }.map { String($0) }
    }
  }

  private static let partTable = RecordTable(part)
  private static let nodeTable = RecordTable(node, onlyWifi: true, references: ["peer": node])

  private static func snapshot(
    _ tables: [RecordTable] = [partTable, nodeTable], _ change: (inout NamespaceConfiguration) -> Void = { _ in }
  ) -> Snapshot {
    DeliveryRig.snapshot {
      $0.records = tables
      $0.recordInterval = .seconds(300)
      change(&$0)
    }
  }

  /// Refuses every operation on the table `part`, and takes the others.
  @Sendable private static func refuse(_ request: TransferRequest) async -> PostAnswer {
    let body = #"{"duplicate":false,"ids":{},"refused":[{"op":"\#(op(request))","message":"no such price"}]}"#
    return ScriptedTransport.answer(200, ScriptedTransport.receipt(for: request, body: body), body: body, to: request)
  }

  private static func op(_ request: TransferRequest) -> String {
    "\(request.packetHeaders.map { "\($0.packetID)" } ?? "").0"
  }

  @Test("flush that waits sends changes at once, does not wait for the interval, and sends a circle's second half, too")
  func flushes() async throws {
    let rig = try await Rig(recordInterval: .seconds(86_400))
    await rig.put("a", in: Self.partTable)
    let first = try await rig.flushed(["namespace": "shop", "wait": true])
    #expect(first?["held"] == [] && first?["timedOut"] == false, "\(first?.text ?? "")")
    #expect(await rig.ledger(Self.part)[.delivered] == 1)
    await rig.put("x", in: Self.nodeTable)
    await rig.put("y", ["peer": "x"], in: Self.nodeTable)
    await rig.put("x", ["peer": "y"], in: Self.nodeTable)
    _ = try await rig.flushed(["wait": true])
    let ledger = await rig.ledger(Self.node)
    #expect(ledger[.waiting] == 0 && ledger[.claimed] == 0, "\(ledger)")
    await rig.engine.stop()
  }

  @Test("flush that waits ends where a gate keeps the changes, counts them, and says which")
  func flushGated() async throws {
    let rig = try await Rig(network: .metered)
    await rig.put("x", in: Self.nodeTable)
    let last = try await rig.flushed(["wait": true])
    #expect(
      last?["held"]?.array?.first?["cause"]?.string?.hasPrefix("node has onlyWifi") == true, "\(last?.text ?? "")")
    await rig.engine.stop()
  }

  @Test("flush of a daemon without tables ends") func flushesNothing() async throws {
    let rig = try await Rig()
    await rig.engine.publish(Self.snapshot([]))
    let last = try await rig.flushed(["wait": true])
    #expect(last?["timedOut"] == false)
    await rig.engine.stop()
  }

  @Test("explain says of each table why its changes wait: the interval, a gate, or that it is not declared any more")
  func explains() async throws {
    let rig = try await Rig(network: .metered)
    let first = await rig.explained()
    #expect(first.count == 2 && first.last == "part records: nothing waits", "\(first)")
    #expect(first.first?.hasPrefix("node records: onlyWifi: node has onlyWifi, and the network is metered") == true)
    await rig.put("a", in: Self.partTable)
    _ = try await rig.flushed(["wait": true])
    await rig.put("a", ["n": 2], in: Self.partTable)
    let pipeline = try #require(await rig.engine.pipelines[Self.shop])
    let isScheduled = await rig.delivery.runs { await pipeline.synchronizing { $0.schedule.isRequested } }
    #expect(isScheduled)
    let interval = await rig.explained().first { $0.hasPrefix("part") } ?? ""
    #expect(
      interval.hasPrefix("part records: recordIntervalSecond: ") && interval.contains("next try in"), "\(interval)")
    await rig.engine.publish(Self.snapshot([Self.nodeTable]))
    let gone = await rig.explained().first { $0.hasPrefix("part") } ?? ""
    #expect(gone.hasPrefix("part records: records: the table is not in `records` any more"), "\(gone)")
    let status = await rig.ask(.status, [:])?["status"]?["namespaces"]?["shop"]?["records"]?["part"]
    #expect(status?["isDeclared"] == false && status?["waiting"] == 1)
    await rig.engine.publish(Self.snapshot([Self.partTable]) { $0.isUpload = false })
    let off = await rig.explained().first { $0.hasPrefix("part") } ?? ""
    #expect(off.hasPrefix("part records: isUpload: "), "\(off)")
    await rig.engine.stop()
  }

  @Test("a refused change is listed with the dead letters, and explain points there, until its record is changed")
  func refused() async throws {
    let rig = try await Rig(ScriptedTransport(Self.refuse))
    await rig.put("a", in: Self.partTable)
    _ = try await rig.flushed(["wait": true])
    let listed = await rig.ask(.deadList, ["namespace": "shop"])
    let record = try #require(listed?["refusedRecords"]?.array?.first)
    #expect(record["id"] == "a" && record["table"] == "part" && record["message"] == "no such price")
    #expect(record["change"] == "insert" && record["version"] == 1 && listed?["dead"] == [])
    let after = await rig.ask(.deadList, ["afterRecord": record["number"]!])
    #expect(after?["refusedRecords"] == [])
    #expect(await rig.explained().contains { $0.contains("`prismctl dead list --namespace shop` tells why") })
    rig.delivery.transport.set(ScriptedTransport.accept)
    await rig.put("a", ["n": 2], in: Self.partTable)
    _ = try await rig.flushed(["wait": true])
    #expect(await rig.ask(.deadList, [:])?["refusedRecords"] == [])
    #expect(await rig.ledger(Self.part)[.delivered] == 1)
    await rig.engine.stop()
  }
}
