import PrismBase
import PrismConfig
import PrismControl
import PrismProtocol
import PrismStore
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismEngine

@Suite("Control: roles and the log of changes")
struct ControlHandlerTests {
  /// The lines that the daemon logged.
  private final class Book: Sendable {
    private let state = Mutex<[String]>([])
    var lines: [String] { state.withLock { $0 } }
    var changes: [String] {
      lines.filter { $0.contains("control command ") }.map { String($0.split(separator: "uid=")[1]) }
    }
    func add(_ line: String) { state.withLock { $0.append(line) } }
  }

  private struct Files: ConfigurationSource {
    let rig: RemoteRig
    func reload() async -> ReloadOutcome { .inForce(generation: 7, changes: ["a", "b"]) }
    func inForce() async -> LoadedConfiguration {
      guard let loaded = try? rig.load() else { preconditionFailure("the rig's files are sound") }
      return loaded
    }
    func read(_ path: String) async throws(ConfigurationFaults) -> LoadedConfiguration { await inForce() }
  }

  private struct Rig {
    let delivery: DeliveryRig
    let book = Book()
    let engine: Engine
    let handler: ControlHandler

    init(_ snapshot: Snapshot = DeliveryRig.snapshot(), transport: ScriptedTransport = ScriptedTransport()) async throws
    {
      let book = book
      delivery = DeliveryRig(transport)
      engine = try await delivery.engine(
        snapshot, log: Logger(level: .error, write: { book.add($0) }))
      let files = Files(rig: RemoteRig())
      handler = ControlHandler(engine: engine, version: "1", configuration: files) { ProcessFigures() }
    }

    /// The last answer of a flush, while the time goes on.
    func flushed(_ arguments: JSONValue) async throws -> JSONValue? { try await last(.flush, arguments) }

    /// The last line of an answer for which time passes.
    func last(_ command: ControlRequest.Command, _ arguments: JSONValue) async throws -> JSONValue? {
      let ended = Mutex<JSONValue?>(nil)
      let task = Task {
        let last = await ask(command, arguments, as: .full).last
        ended.withLock { $0 = last }
      }
      try #require(await delivery.runs(step: .milliseconds(50)) { ended.withLock { $0 != nil } })
      await task.value
      return ended.withLock { $0 }
    }

    func ask(_ command: ControlRequest.Command, _ arguments: JSONValue = [:], as role: ControlRole) async -> [JSONValue]
    {
      let caller = ControlCaller(userID: 1001, processID: 42, role: role)
      var answers: [JSONValue] = []
      for await answer in handler.handle(ControlRequest(command, arguments.object ?? []), from: caller) {
        answers.append(answer)
        if answer["following"] != nil { break }
      }
      return answers
    }
  }

  private static let open: Set<ControlRequest.Command> = [
    .status, .network, .explain, .trace, .tail, .doctor, .configShow,
  ]

  @Test("a reader may look, and nothing else", arguments: ControlRequest.Command.allCases)
  func readers(command: ControlRequest.Command) async throws {
    let rig = try await Rig()
    await rig.delivery.report(1...2, to: rig.engine)
    let arguments: JSONValue = ["namespace": "shop", "all": true, "path": "/x", "reportId": "none"]
    let last = try #require(await rig.ask(command, arguments, as: .reader).last)
    let isRefused = last["error"]?["exitCode"]?.int == 77
    #expect(isRefused != Self.open.contains(command), "\(command): \(last.text)")
    if isRefused {
      #expect(last["error"]?["message"]?.string?.contains("is for control.group") == true)
      #expect(rig.book.changes.isEmpty)
      let queues = try await rig.engine.parts.store.status()
      #expect(queues[NamespaceName("shop")!]?[.meta]?.ledger[.waiting] == 2, "nothing was done")
    }
    await rig.engine.stop()
  }

  @Test("each change is one line with who, what and how many, at any level of the log; looking is no change")
  func changes() async throws {
    let rig = try await Rig()
    await rig.delivery.report(1...5, to: rig.engine)
    for command in Self.open { _ = await rig.ask(command, ["namespace": "shop", "reportId": "none"], as: .full) }
    _ = await rig.ask(.deadList, as: .full)
    #expect(rig.book.changes.isEmpty, "\(rig.book.changes)")
    let steps: [(ControlRequest.Command, JSONValue, String)] = [
      (.remove, ["namespace": "shop", "oldest": 2], "command=remove namespace=shop oldest=2 removed=2"),
      (.export, ["namespace": "shop"], "command=export namespace=shop exported=3"),
      (.flush, ["namespace": "shop"], "command=flush namespace=shop"),
      (.reload, [:], "command=reload generation=7 changes=2"),
      (.deadRequeue, ["all": true], "command=dead-requeue all=true requeued=0"),
      (.deadDrop, ["all": true, "namespace": "shop"], "command=dead-drop namespace=shop all=true dropped=0"),
      (.deadShow, ["id": 9], #"command=dead-show id=9 failure="there is no dead letter 9""#),
      (.deadDrop, ["id": "r-1"], #"command=dead-drop id=r-1 failure="no dead letter has the report id r-1""#),
      (.ack, [:], "command=ack"),
      (.remove, ["namespace": "shop", "reportId": "a\u{1B}[2J\n<3>b"], #"reportId="a\u001b[2J\n<3>b" removed=0"#),
    ]
    for (index, step) in steps.enumerated() {
      _ = await rig.ask(step.0, step.1, as: .full)
      #expect(rig.book.changes.count == index + 1, "\(step.0): \(rig.book.changes)")
      let line = try #require(rig.book.changes.last)
      #expect(line.hasPrefix("1001 pid=42 command=") && line.hasSuffix(step.2 + "\n"), "\(line)")
    }
    await rig.engine.stop()
  }

  @Test("a report id of digits is no number of another dead letter") func numericIDs() async throws {
    let rig = try await Rig(
      DeliveryRig.snapshot { $0.maxItem = 1 },
      transport: ScriptedTransport { ScriptedTransport.refusal(422, body: #"{"message":"no"}"#, to: $0) })
    for id in ["3", "2", "1", "007"] {
      var batch = ReportBatch(
        namespace: NamespaceName("shop")!, userID: 1000, context: CommonContext(members: []),
        quota: StoreQuota(bytesMax: 1 << 30, evictsOldest: false))
      batch.types = [.init(type: ReportType("order")!, priority: .realtime, isRealtime: true)]
      batch.arena = Array("\"n\":1\(id)".utf8)
      let body = batch.arena.indices
      batch.arena += id.utf8
      var row = ReportBatch.Row(type: 0, createdTime: 1, body: body, metaBytes: 150)
      row.clientReportID = body.upperBound..<batch.arena.count
      batch.rows = [row]
      _ = await rig.engine.sink.append([batch])
      #expect(await rig.delivery.runs { (try? await rig.engine.parts.store.deadLetter(.report(id))) != nil })
    }
    func shown(_ arguments: JSONValue) async -> String? {
      let answer = await rig.ask(.deadShow, arguments, as: .full).last
      return answer?["reportId"]?.string ?? answer?["error"]?["message"]?.string
    }
    for (asked, found) in [
      (["id": "007"], "007"), (["id": "1"], "1"), (["id": 1, "isNumber": true], "3"), (["id": 2], "2"),
      (["id": 4], "007"),
    ] as [(JSONValue, String)] {
      #expect(await shown(asked) == found, "\(asked.text)")
    }
    #expect(await shown(["id": 1])?.contains("add --number or --report-id") == true)
    await rig.engine.stop()
  }

  @Test("a trace names the type as the program sent it, as all other answers do")
  func tracedType() async throws {
    let rig = try await Rig()
    await rig.delivery.report(1...1, to: rig.engine)
    let exported = await rig.ask(.export, ["namespace": "shop"], as: .full).first
    let meta = try #require(exported?["meta"])
    let traced = await rig.ask(.trace, ["reportId": meta["REPORT_ID"] ?? .null], as: .reader).last
    let type = try #require(traced?["rows"]?.array?.first?["type"]?.string)
    #expect(meta["MONITOR_TYPE"]?.string == "shop-\(type)", "\(meta.text)")
    await rig.engine.stop()
  }

  @Test("an export whose reader goes away is logged with the rows that it got")
  func unfinishedExport() async throws {
    let rig = try await Rig()
    await rig.delivery.report(1...5, to: rig.engine)
    let caller = ControlCaller(userID: 1001, processID: 42, role: .full)
    func readTwo() async {
      var count = 0
      for await _ in rig.handler.handle(ControlRequest(.export), from: caller) {
        count += 1
        if count == 2 { break }
      }
    }
    await readTwo()
    #expect(rig.book.changes == ["1001 pid=42 command=export exported=2\n"])
    await rig.engine.stop()
  }

  @Test("every command has a role, and what hands out or changes something is logged")
  func table() {
    for command in ControlRequest.Command.allCases {
      #expect((command.role == .reader) == Self.open.contains(command))
      #expect(!command.isLogged || command.role == .full)
    }
  }

  private func text(_ rig: Rig, _ command: ControlRequest.Command, _ arguments: JSONValue) async -> String {
    await rig.ask(command, arguments, as: .full).last?["text"]?.string ?? ""
  }

  @Test("explain says that nothing waits where nothing does, and why reports are missing that no gate keeps")
  func explains() async throws {
    var snapshot = DeliveryRig.snapshot()
    let rig = try await Rig(snapshot)
    let empty = await text(rig, .explain, ["namespace": "shop", "type": "order"])
    #expect(
      empty
        == "order meta: nothing waits\norder payload: isUploadPayload: isUploadPayload is off for order in the monitor list"
    )
    let name = NamespaceName("shop")!
    snapshot.namespaces[name]?.isGather = false
    snapshot.namespaces[name]?.onFull = .refuse
    snapshot.namespaces[name]?.maxStoreBytes = 0
    await rig.engine.publish(snapshot)
    let off = await text(rig, .explain, ["namespace": "shop", "type": "order"])
    #expect(off.contains("\nisGather: off in the configuration; new reports are refused with gather_off"))
    #expect(
      off.contains("\nmaxStoreMByte: 0 of 0 bytes are used; new reports that do not fit are refused with store_full"))
    await rig.engine.stop()
  }

  @Test(
    "what no gate keeps is said once: it is on its way, or it waits as something set back", arguments: [true, false])
  func setBackWords(isSetBack: Bool) {
    let words = ShutGate.words(nil, isEmpty: false, isSetBack: isSetBack)
    #expect(words.contains("on its way") != isSetBack && words.contains("set back") == isSetBack)
    #expect(ShutGate.words(nil, isEmpty: true, isSetBack: isSetBack) == "nothing waits")
  }

  @Test("tail of a namespace that does not exist is an error, not a silence")
  func tailOfNothing() async throws {
    let rig = try await Rig()
    let answer = try #require(await rig.ask(.tail, ["namespace": "nosuch"], as: .reader).last)
    #expect(answer["error"]?["message"]?.string?.hasPrefix("there is no namespace `nosuch`") == true)
    #expect(await rig.ask(.tail, ["namespace": "shop"], as: .reader).last?["following"] == true)
    let refused: JSONValue = ["namespace": "nosuch", "refused": true]
    #expect(await rig.ask(.tail, refused, as: .reader).last?["following"] == true, "it may be what is refused")
    await rig.engine.stop()
  }

  @Test("flush that waits ends where all that is left is held, and says by what; and when its time is up")
  func flushEnds() async throws {
    let rig = try await Rig(transport: ScriptedTransport { ScriptedTransport.answer(401, to: $0) })
    await rig.delivery.report(1...3, to: rig.engine)
    let isHeld = await rig.delivery.runs { await rig.engine.pipelines[NamespaceName("shop")!]?.status.isHeld == true }
    #expect(isHeld)
    let last = try await rig.flushed(["namespace": "shop", "wait": true])
    #expect(last?["timedOut"] == false && last?["done"] == true)
    #expect(last?["held"]?.array?.first?["namespace"] == "shop", "\(last?.text ?? "")")
    await rig.engine.stop()
  }

  @Test("a carry ends when its reader takes no more, and its namespace sends over the network again")
  func stalledCarry() async throws {
    let rig = try await Rig()
    await rig.delivery.report(1...3, to: rig.engine)
    let caller = ControlCaller(userID: 1001, processID: 42, role: .full)
    var lines = rig.handler.handle(ControlRequest(.carry), from: caller).makeAsyncIterator()
    #expect(await lines.next()?["file"] != nil)
    let began = rig.delivery.time.uptime
    let isSent = await rig.delivery.runs { !rig.delivery.transport.requests.isEmpty }
    #expect(isSent && rig.delivery.time.uptime - began >= .seconds(120))
    #expect(try rig.delivery.transport.requests.flatMap { try DeliveryRig.numbers($0) } == [1, 2, 3])
    let last = await lines.next()
    #expect(last?["error"]?["message"]?.string?.contains("nothing was read for 120 s") == true, "\(last?.text ?? "")")
    #expect(await lines.next() == nil)
    await rig.engine.stop()
  }

  @Test("what was set back, since something before the collector takes no more, goes into files")
  func carriedSetBack() async throws {
    let rig = try await Rig()
    rig.delivery.transport.set { ScriptedTransport.answer(413, to: $0) }
    await rig.delivery.report(1...1, to: rig.engine)
    let isSetBack = try await rig.delivery.runs {
      try await rig.engine.parts.store.status()[DeliveryTests.shop]?[.meta]?.setBack == 1
    }
    #expect(isSetBack)
    let last = try await rig.last(.carry, [:])
    #expect(last?["carried"]?["reports"] == 1, "\(last?.text ?? "")")
    await rig.engine.stop()
  }

  @Test(
    "flush that waits ends at once where a gate keeps all rows, and says which; explain names it for each type",
    arguments: [(false, "isUpload is off"), (true, "the namespace is not configured any more")])
  func flushGated(isRetired: Bool, cause: String) async throws {
    var snapshot = DeliveryRig.snapshot { $0.isUpload = false }
    let rig = try await Rig(snapshot)
    await rig.delivery.report(1...3, to: rig.engine)
    if isRetired {
      snapshot.namespaces[NamespaceName("shop")!] = nil
      await rig.engine.publish(snapshot)
    }
    #expect(
      await rig.ask(.flush, [:], as: .full).last?["held"]?.array?.first?["cause"]?.string?.hasPrefix(cause) == true)
    let last = try await rig.flushed(["wait": true])
    let held = last?["held"]?.array ?? []
    #expect(held.count == 1 && held.first?["namespace"] == "shop" && last?["timedOut"] == false, "\(held)")
    #expect(held.first?["cause"]?.string?.hasPrefix(cause) == true, "\(held)")
    let explained = await rig.ask(.explain, ["namespace": "shop"], as: .reader).last?["text"]?.string ?? ""
    #expect(explained.contains(cause), "\(explained)")
    await rig.engine.stop()
  }
}
