import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

@testable import PrismEngine

/// Questions about kept reports (docs/recorder.md, "Questions").
@Suite("Questions of the server") struct QuestionTests {
  private static let boot = ReportType("boot")!

  private static func rules(_ bytesMax: Int = 1 << 20, _ types: String...) -> DaemonConfiguration.Commands {
    CommandRig.rules {
      $0.askTypes = (types.isEmpty ? ["boot", "trace.*"] : types).map { ReportType(entry: $0)! }
      $0.askBytesMax = bytesMax
    }
  }

  /// Kept reports, each with its number as `ms`.
  private func keep(_ numbers: Range<Int>, _ engine: Engine, of type: ReportType = boot) async {
    var batch = ReportBatch(
      namespace: CommandRig.shop, userID: 1000, context: CommonContext(members: Array(#""APP_NAME":"till""#.utf8)),
      quota: StoreQuota(bytesMax: 1 << 30, evictsOldest: false, ringBytesMax: 1 << 24), app: nil)
    batch.types = [.init(type: type, priority: .kept, isRealtime: false)]
    for number in numbers {
      let body = Array(#""ms":\#(number),"route":"/\#(number % 3)""#.utf8)
      batch.rows.append(
        .init(
          type: 0, createdTime: Int64(number) * 1000, body: batch.arena.count..<batch.arena.count + body.count,
          metaBytes: 100))
      batch.arena += body
    }
    _ = await engine.parts.store.append([batch])
  }

  /// The numbers that left, by packet.
  private func left(_ rig: CommandRig) throws -> [[Int]] {
    var packets: [PacketID: [Int]] = [:]
    for request in rig.rig.transport.left {
      guard let headers = request.packetHeaders, headers.kind == .meta else { continue }
      let reader = try PacketReader(cipher: .aes128GCM, key: DeliveryRig.key)
      let metas = try reader.read(headers, body: request.body, mac: nil).metas.merged()
        .map { try JSONValue(parsing: $0) }
      #expect(metas.allSatisfy { $0["TRIGGER"] == "ask.c1" })
      packets[headers.packetID] = metas.compactMap { $0["ms"]?.int }
    }
    return Array(packets.values)
  }

  private func accounts(_ engine: Engine) async throws -> Ledger {
    try await engine.parts.store.status()[CommandRig.shop]?[.meta]?.ledger ?? Ledger()
  }

  private func found(_ engine: Engine) async throws -> QuestionAnswer {
    try #require(try await CommandRig.answer(engine)?.result.flatMap { QuestionAnswer(json: $0) })
  }

  @Test("numbers are answered by group, exactly but for percentiles, and every report stays") func numbers()
    async throws
  {
    let rig = CommandRig()
    try await rig.run(Self.rules()) { (engine, handler) async throws in
      await keep(1..<3001, engine)
      await keep(5000..<5010, engine, of: ReportType("other")!)
      rig.insert(rig.request("c1", .ask, ["type": .text("boot"), "of": .text("ms"), "by": .text("route")]))
      #expect(try await rig.reaches(.done, engine))
      let answer = try await found(engine)
      #expect(answer.rows == 3000 && answer.looked == 3010 && answer.bytes == 0 && answer.others.count == 0)
      #expect(answer.groups.keys.map(\.text).sorted() == ["/0", "/1", "/2"])
      for (first, sketch) in [
        (3, answer.groups[ExactText("/0")]!), (1, answer.groups[ExactText("/1")]!),
        (2, answer.groups[ExactText("/2")]!),
      ] {
        let truth = stride(from: first, through: 3000, by: 3).map(Double.init)
        #expect(sketch.count == 1000 && sketch.sum == truth.reduce(0, +))
        #expect(sketch.min == truth[0] && sketch.max == truth[999])
        #expect(abs(sketch.percentile(0.95)! - truth[949]) <= truth[949] * sketch.error)
      }
      let ledger = try await accounts(engine)
      #expect(ledger[.kept] == 3010 && ledger.isBalanced)
      #expect(
        await rig.rig.runs { rig.lines.contains { $0.contains("a question was answered") && $0.contains("id=c1") } })
      #expect(await rig.rig.runs { await handler.counts.ends[CommandRig.shop] == ["done": 1] })
    }
    #expect(try left(rig).isEmpty)
  }

  @Test(
    "only reports that meet the question are counted",
    arguments: [
      (["field": .text("ms"), "from": .integer(10), "to": .integer(19)], 10),
      (["field": .text("route"), "equals": .text("/1")], 33),
      (["field": .text("APP_NAME"), "contains": .text("ill")], 100),
      (["field": .text("none"), "equals": .text("/1")], 0),
      (["since": .integer(90_000), "until": .integer(95_000)], 5),
      (["last": .integer(3600)], 0),
    ] as [([String: CommandValue], Int)])
  func conditions(args: [String: CommandValue], count: Int) async throws {
    let rig = CommandRig()
    try await rig.run(Self.rules()) { (engine, _) async throws in
      await keep(0..<100, engine)
      rig.rig.time.advance(by: .seconds(7200))
      await keep(5000..<5001, engine, of: ReportType("trace.x")!)
      rig.rig.time.advance(by: .seconds(7200))
      rig.insert(rig.request("c1", .ask, args.merging(["type": .text("boot")]) { $1 }, seconds: 30_000))
      #expect(try await rig.reaches(.done, engine))
      let answer = try await found(engine)
      #expect(answer.rows == count && (answer.groups[ExactText("")]?.count ?? 0) == count)
    }
  }

  @Test("the reports that were asked for leave once, with the question's name, and no others") func rows() async throws
  {
    let rig = CommandRig()
    try await rig.run(Self.rules()) { (engine, _) async throws in
      await keep(0..<200, engine)
      rig.insert(
        rig.request(
          "c1", .ask, ["type": .text("boot"), "rows": .truth(true), "field": .text("ms"), "from": .integer(150)]))
      #expect(try await rig.reaches(.done, engine))
      let answer = try await found(engine)
      #expect(answer.rows == 50 && answer.bytes == 5000)
      #expect(try await rig.rig.runs { try await accounts(engine)[.delivered] == 50 })
      let ledger = try await accounts(engine)
      #expect(ledger[.kept] == 150 && ledger.isBalanced)
    }
    #expect(try left(rig).flatMap(\.self) == Array(150..<200))
  }

  @Test("of a type that the device's file does not allow all kept reports count as refused in the hourly report")
  func refusedInHour() async throws {
    let rig = CommandRig()
    try await rig.run(Self.rules(1 << 20, "log")) { (engine, _) async throws in
      await keep(0..<100, engine)
      await keep(0..<7, engine, of: ReportType("log")!)
      rig.insert(rig.request("c1", .ask, ["type": .text("boot"), "last": .integer(1)]))
      #expect(try await rig.reaches(.refused, engine))
      let note = try #require(try await engine.parts.store.note(CommandRig.shop, "ring"))
      // Overwritten, triggered, asked, refused and declined.
      #expect(try JSONValue(parsing: note)["types"] == ["boot": [0, 0, 0, 100, 0]])
    }
  }

  struct Refused: Sendable, CustomTestStringConvertible {
    var label: String
    var words: String
    var state = CommandState.refused
    var rules = QuestionTests.rules()
    var args: [String: CommandValue] = [:]
    var seconds: Int64 = 3600
    var sign: @Sendable (CommandRequest) throws -> JSONValue = { $0.fields }
    var testDescription: String { label }
  }

  static let signing = CommandRig.rules {
    ($0.askTypes, $0.publicKey) = ([ReportType("boot")!], CommandRig.key.publicKey)
  }
  static let refused = [
    Refused(label: "not_allowed", words: "boot is not in ask.allow", rules: rules(1 << 20, "log")),
    Refused(label: "not_allowed", words: "boot is not in ask.allow", rules: CommandRig.rules()),
    Refused(label: "not_allowed", words: "* is not in ask.allow", args: ["type": .text("*")]),
    Refused(label: "over_budget", words: "100 reports of 10000 bytes, and may have 4096", rules: rules(4096)),
    Refused(label: "over_budget", words: "10000 bytes, and may have 2048", args: ["maxKByte": .integer(2)]),
    Refused(label: "unreadable", words: "last must be", args: ["last": .text("x")]),
    Refused(label: "expired", words: "", state: .expired, seconds: -1),
    Refused(label: "unsigned", words: "signed commands only", rules: signing),
    Refused(
      label: "signature", words: "not one of", rules: signing,
      sign: {
        var other = $0
        other.args["type"] = .text("log")
        var forged = $0
        forged.signature = try other.signed(by: CommandRig.key).signature
        return forged.fields
      }),
  ]

  @Test(
    "a question that is forged, expired, not allowed or too large gets nothing, and is reported", arguments: refused)
  func refusals(_ one: Refused) async throws {
    let rig = CommandRig()
    try await rig.run(one.rules) { (engine, handler) async throws in
      await keep(0..<100, engine)
      let args: [String: CommandValue] = ["type": .text("boot"), "rows": .truth(true)].merging(one.args) { $1 }
      let request = rig.request("c1", .ask, args, seconds: one.seconds)
      rig.insert(request, try one.sign(request))
      #expect(try await rig.reaches(one.state, engine))
      let result = try await CommandRig.answer(engine)?.result?.string ?? ""
      #expect(result.contains(one.words), "\(result)")
      #expect(await rig.rig.runs { await handler.counts.ends[CommandRig.shop] == [one.label: 1] })
      #expect(CommandCounts.results.contains(one.label))
      #expect(
        await rig.rig.runs {
          rig.lines.contains { $0.contains("a command was not carried out") && $0.contains("cause=\(one.label)") }
        })
      #expect(try await accounts(engine)[.kept] == 100)
    }
    #expect(try left(rig).isEmpty)
  }

  @Test("the hour says how many reports an answer was of, and how many a budget left", arguments: [true, false])
  func hour(isRows: Bool) async throws {
    let rig = CommandRig()
    try await rig.run(Self.rules(2048)) { (engine, _) async throws in
      let quota = StoreQuota(bytesMax: 1 << 30, evictsOldest: false)
      let policy = RetentionPolicy(
        expirationDays: 15, isUpdateClear: false, appVersion: nil, maxBodyBytes: 1 << 20, ringReportQuota: quota)
      try await engine.parts.store.apply([CommandRig.shop: policy])
      await keep(0..<100, engine)
      for (id, from, state) in [("c1", 90, CommandState.done), ("c2", 50, isRows ? .refused : .done)] {
        let args: [String: CommandValue] = [
          "type": .text("boot"), "rows": .truth(isRows), "field": .text("ms"), "from": .integer(Int64(from)),
        ]
        rig.insert(rig.request(id, .ask, args))
        #expect(
          try await rig.rig.runs {
            try await engine.parts.store.commands(of: CommandRig.shop, after: nil).records
              .first { $0.commandID.text == id }.flatMap { CommandAnswer(fields: try JSONValue(parsing: $0.fields)) }?
              .state == state
          })
      }
      let note = try #require(try await engine.parts.store.note(CommandRig.shop, "ring"))
      let counts = try JSONValue(parsing: note)["types"]?["boot"]?.array?.compactMap(\.int)
      // Overwritten, triggered, asked, refused, declined.
      #expect(counts == (isRows ? [0, 0, 10, 40, 0] : [0, 0, 60, 0, 0]))
    }
  }

  @Test("a question that comes again, or of a deleted record, lets nothing more go") func replayed() async throws {
    let rig = CommandRig()
    let request = rig.request("c1", .ask, ["type": .text("boot"), "rows": .truth(true)])
    try await rig.run(Self.rules()) { (engine, _) async throws in
      await keep(0..<10, engine)
      rig.insert(request)
      #expect(try await rig.reaches(.done, engine))
      await keep(10..<20, engine)
      rig.delete()
      #expect(try await rig.reaches(nil, engine))
    }
    try await rig.run(Self.rules()) { (engine, _) async throws in
      rig.insert(request)
      #expect(try await rig.reaches(.refused, engine))
      let ledger = try await accounts(engine)
      #expect(ledger[.kept] == 10 && ledger.isBalanced)
    }
    // Its record goes between the look and the end.
    try await rig.run(Self.rules()) { (engine, _) async throws in
      let store = engine.parts.store
      var run = QuestionRun(try Question(request.args)) { _ in true }
      while !run.isComplete { run = try await store.look(run, of: CommandRig.shop) }
      let step = CommandStep(
        namespace: CommandRig.shop, record: RecordID("gone")!, command: RecordID("gone")!, judged: nil,
        answer: CommandAnswer(.done, stateTime: 1), mark: nil)
      #expect(try await store.finish(run, step).outcome == .changed)
      #expect(try await accounts(engine)[.kept] == 10)
    }
    #expect(try left(rig).flatMap(\.self) == Array(0..<10))
  }

  @Test(
    "a daemon that is killed answers a question once, or lets nothing go",
    arguments: [(.begins, .failed, 0), (.ended, .done, 100), (.uploaded, .done, 100)]
      as [(CommandDeath.Moment, CommandState, Int)])
  func killed(moment: CommandDeath.Moment, state: CommandState, count: Int) async throws {
    let rig = CommandRig()
    rig.death.comes(at: moment)
    try await rig.run(Self.rules()) { (engine, _) async throws in
      await keep(0..<100, engine)
      rig.insert(rig.request("c1", .ask, ["type": .text("boot"), "rows": .truth(true)]))
      #expect(await rig.rig.runs { rig.death.isOver })
    }
    for start in 1...2 {
      try await rig.run(Self.rules()) { (engine, _) async throws in
        #expect(try await rig.reaches(state, engine), "start \(start)")
        #expect(try await rig.rig.runs { try await accounts(engine)[.delivered] == count }, "start \(start)")
        let ledger = try await accounts(engine)
        #expect(ledger[.kept] == 100 - count && ledger.isBalanced, "start \(start)")
      }
    }
    #expect(try left(rig).flatMap(\.self).sorted() == Array(0..<count))
  }
}
