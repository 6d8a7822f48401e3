import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

@testable import PrismEngine

/// Triggers that a server sets by signed commands (docs/recorder.md, "Triggers of a server").
@Suite struct ServerTriggerTests {
  private static let log = ReportType("log")!
  private static let types = ["log", "trace.*"].map { ReportType(entry: $0)! }
  private static let set: [String: CommandValue] = [
    "name": .text("crash"), "on": .text("appCrash"), "types": .text("log"), "before": .integer(5),
    "everySecond": .integer(0),
  ]

  private static func rules(
    _ change: (inout DaemonConfiguration.Commands) -> Void = { _ in }
  ) -> DaemonConfiguration.Commands {
    CommandRig.rules {
      ($0.askTypes, $0.publicKey) = (types, CommandRig.key.publicKey)
      change(&$0)
    }
  }

  /// Reports as the ingest server stores them: by the rules of the configuration in force.
  private func store(
    _ numbers: Range<Int>, _ engine: Engine, of type: ReportType = log, _ priority: Priority = .kept
  ) async {
    var batch = ReportBatch(
      namespace: CommandRig.shop, userID: 1000, context: CommonContext(members: Array(#""APP_NAME":"till""#.utf8)),
      quota: StoreQuota(bytesMax: 1 << 30, evictsOldest: false, ringBytesMax: 1 << 24), app: nil)
    batch.types = [.init(type: type, priority: priority, isRealtime: false)]
    for number in numbers {
      let start = batch.arena.count
      batch.arena += #""n":\#(number)"#.utf8
      batch.rows.append(.init(type: 0, createdTime: 1000, body: start..<batch.arena.count, metaBytes: 100))
    }
    await withCheckedContinuation { done in
      engine.ingest.append([batch], notes: []) { _ in done.resume() }
    }
  }

  private func held(_ engine: Engine) async -> [String] {
    await engine.parts.store.triggers[CommandRig.shop, default: [:]].keys.sorted()
  }

  private func crash(_ engine: Engine) async { await store(0..<1, engine, of: .appCrash, .crash) }

  private func kept(_ engine: Engine) async throws -> Int {
    let ledger = try await engine.parts.store.status()[CommandRig.shop]?[.meta]?.ledger ?? Ledger()
    #expect(ledger.isBalanced)
    return ledger[.kept]
  }

  private func send(
    _ rig: CommandRig, _ id: String = "c1", _ args: [String: CommandValue] = set, seconds: Int64 = 3600,
    _ sign: (CommandRequest) throws -> JSONValue = { try $0.signed(by: CommandRig.key).fields }
  ) throws {
    let request = rig.request(id, .trigger, args, seconds: seconds)
    rig.insert(request, try sign(request))
  }

  private func ends(_ id: String, _ state: CommandState, _ rig: CommandRig, _ engine: Engine) async throws -> String {
    let found = try await rig.rig.runs {
      try await answer(id, engine)?.state == state
    }
    #expect(found, "\(id) \(state)")
    return try await answer(id, engine)?.result?.string ?? ""
  }

  private func answer(_ id: String, _ engine: Engine) async throws -> CommandAnswer? {
    let record = try await engine.parts.store.commands(of: CommandRig.shop, after: nil).records
      .first { $0.commandID.text == id }
    return record.flatMap { try? JSONValue(parsing: $0.fields) }.flatMap { CommandAnswer(fields: $0) }
  }

  @Test("a trigger on a type that the namespace does not take is refused, as one in a file is") func unknownType()
    async throws
  {
    let rig = CommandRig()
    try await rig.run(Self.rules()) { (engine, _) async throws in
      try send(rig, "c1", Self.set.merging(["on": .text("nope")]) { $1 })
      #expect(try await ends("c1", .failed, rig, engine) == "on: is nope, must be a type of monitorList")
      #expect(await held(engine) == [])
    }
  }

  @Test("a condition on a type that may not be asked for does not hold: that it fired would tell the field")
  func forbiddenField() async throws {
    let rig = CommandRig()
    try await rig.run(Self.rules()) { (engine, _) async throws in
      try send(rig, "c1", Self.set.merging(["field": .text("n"), "equals": .text("0")]) { $1 })
      _ = try await ends("c1", .done, rig, engine)
      await store(0..<5, engine)
      await crash(engine)
      #expect(try await kept(engine) == 5)
    }
  }

  @Test("a signed trigger lets kept reports of allowed types go, over a restart, until it is taken away") func holds()
    async throws
  {
    let rig = CommandRig()
    try await rig.run(Self.rules()) { (engine, _) async throws in
      try send(rig)
      #expect(try await ends("c1", .done, rig, engine) == "holds for 168 hours")
      await store(0..<20, engine)
      await store(0..<20, engine, of: ReportType("secret")!)
      await crash(engine)
      #expect(try await kept(engine) == 35)
      #expect(await engine.parts.store.triggers[CommandRig.shop]?["server.crash"]?.rows == 5)
    }
    try await rig.run(Self.rules()) { (engine, _) async throws in
      #expect(await held(engine) == ["server.crash"])
      await crash(engine)
      #expect(try await kept(engine) == 30, "it is still there")
      try send(rig, "c2", ["name": .text("crash"), "remove": .truth(true)])
      #expect(try await ends("c2", .done, rig, engine) == "taken away")
      await crash(engine)
      #expect(try await kept(engine) == 30)
      #expect(await engine.parts.store.triggers[CommandRig.shop]?["server.crash"] == nil)
      try send(rig, "c3", ["name": .text("crash"), "remove": .truth(true)])
      #expect(try await ends("c3", .failed, rig, engine) == "no such trigger holds")
    }
  }

  @Test("it ends with its hours, and with what the device's own file allows") func ends() async throws {
    let rig = CommandRig()
    try await rig.run(Self.rules()) { (engine, _) async throws in
      try send(rig, "c1", Self.set.merging(["hours": .integer(2)]) { $1 })
      _ = try await ends("c1", .done, rig, engine)
      await store(0..<40, engine)
    }
    for rules in [
      Self.rules { $0.allow.remove(.trigger) }, Self.rules { $0.askTypes = [ReportType("trace.x")!] },
      Self.rules { $0.publicKey = nil },
    ] {
      try await rig.run(rules) { (engine, _) async throws in
        await crash(engine)
        #expect(try await kept(engine) == 40)
      }
    }
    try await rig.run(Self.rules()) { (engine, _) async throws in
      await crash(engine)
      #expect(try await kept(engine) == 35)
      rig.rig.time.advance(by: .seconds(7201))
      await crash(engine)
      #expect(try await kept(engine) == 35)
      #expect(await rig.rig.runs { await held(engine).isEmpty })
    }
  }

  @Test("a device holds a bound of them") func bound() async throws {
    let rig = CommandRig()
    try await rig.run(Self.rules()) { (engine, _) async throws in
      for number in 0...ReportTrigger.countMax {
        try send(rig, "c\(number)", Self.set.merging(["name": .text("n\(number)")]) { $1 })
        let isLast = number == ReportTrigger.countMax
        let result = try await ends("c\(number)", isLast ? .failed : .done, rig, engine)
        #expect(result.contains("hold already") == isLast)
      }
      try send(rig, "again", Self.set.merging(["name": .text("n0")]) { $1 })
      _ = try await ends("again", .done, rig, engine)
    }
  }

  struct Refused: Sendable, CustomTestStringConvertible {
    var label: String
    var words: String
    var state = CommandState.refused
    var args: [String: CommandValue] = [:]
    var rules = ServerTriggerTests.rules()
    var seconds: Int64 = 3600
    var sign: @Sendable (CommandRequest) throws -> JSONValue = { try $0.signed(by: CommandRig.key).fields }
    var testDescription: String { "\(label): \(words)" }
  }

  static let refused = [
    Refused(label: "not_allowed", words: "trigger is not in commands.allow", rules: rules { $0.allow = [.flush] }),
    Refused(label: "not_allowed", words: "secret is not in ask.allow", args: ["types": .text("log,secret")]),
    Refused(label: "not_allowed", words: "* is not in ask.allow", args: ["types": .text("*")]),
    Refused(label: "unsigned", words: "signed commands only", sign: { $0.fields }),
    Refused(label: "unsigned", words: "has no remote.publicKey", rules: rules { $0.publicKey = nil }),
    Refused(
      label: "signature", words: "not one of",
      sign: {
        var (other, forged) = ($0, $0)
        other.args["before"] = .integer(1)
        forged.signature = try other.signed(by: CommandRig.key).signature
        return forged.fields
      }),
    Refused(label: "expired", words: "", state: .expired, seconds: -1),
    Refused(label: "unreadable", words: "name must be", args: ["name": .text("a b")]),
    Refused(label: "unreadable", words: "on must be", args: ["on": .text("*")]),
    Refused(label: "unreadable", words: "before must be", args: ["before": .integer(1 << 40)]),
    Refused(label: "unreadable", words: "hours must be", args: ["hours": .integer(721)]),
    Refused(label: "unreadable", words: "needs one condition", args: ["field": .text("ms")]),
    Refused(label: "unreadable", words: "no argument other", args: ["other": .text("x")]),
    Refused(label: "unreadable", words: "before or after", args: ["before": .integer(0)]),
  ]

  @Test("one that is forged, expired, not allowed or no trigger does not hold, and is reported", arguments: refused)
  func refusals(_ one: Refused) async throws {
    let rig = CommandRig()
    try await rig.run(one.rules) { (engine, handler) async throws in
      try send(rig, "c1", Self.set.merging(one.args) { $1 }, seconds: one.seconds, one.sign)
      let result = try await ends("c1", one.state, rig, engine)
      #expect(result.contains(one.words), "\(result)")
      #expect(await rig.rig.runs { await handler.counts.ends[CommandRig.shop] == [one.label: 1] })
      #expect(await held(engine).isEmpty)
      await store(0..<10, engine)
      await crash(engine)
      #expect(try await kept(engine) == 10)
    }
  }

  @Test("one that comes again after it was taken away does not hold") func replayed() async throws {
    let rig = CommandRig()
    let request = try rig.request("c1", .trigger, Self.set).signed(by: CommandRig.key)
    try await rig.run(Self.rules()) { (engine, _) async throws in
      rig.insert(request)
      _ = try await ends("c1", .done, rig, engine)
      try send(rig, "c2", ["name": .text("crash"), "remove": .truth(true)])
      _ = try await ends("c2", .done, rig, engine)
      rig.delete("c1")
      #expect(try await rig.rig.runs { try await answer("c1", engine) == nil })
      rig.insert(request)
      #expect(try await ends("c1", .refused, rig, engine).contains("began before"))
      #expect(await held(engine).isEmpty)
    }
  }
}
