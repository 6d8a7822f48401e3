import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

@testable import PrismEngine

@Suite("Commands of the server") struct CommandHandlerTests {
  @Test(
    "each allowed command is carried out once, and its result is in its record",
    arguments: [
      (.flush, [:], [], nil), (.requeue, [:], [], "requeued 0"), (.drop, [:], [], "dropped 0"),
      (.doctor, [:], ["doctor c1"], "did doctor c1"),
      (.log, ["level": .text("debug"), "minutes": .integer(5)], [], "debug for 5 min"),
      (.collect, ["path": .text("/var/log/app.log")], ["collect /var/log/app.log"], "did collect /var/log/app.log"),
      (.run, ["name": .text("restart-till")], ["run restart-till c1"], "did run restart-till c1"),
    ] as [(CommandName, [String: CommandValue], [String], String?)])
  func commands(name: CommandName, args: [String: CommandValue], asked: [String], result: String?) async throws {
    let rig = CommandRig()
    try await rig.run { (engine, handler) async throws in
      rig.insert(rig.request("c1", name, args))
      #expect(try await rig.reaches(.done, engine))
      #expect(try await CommandRig.answer(engine)?.result?.string == result)
      #expect(rig.tools.asked == asked)
      #expect(await rig.rig.runs { await handler.counts.ends[CommandRig.shop] == ["done": 1] })
      #expect(await rig.rig.runs { !rig.rig.transport.requests.isEmpty })
    }
  }

  @Test("dead letters wait again, or are given up, by a command", arguments: [CommandName.requeue, .drop])
  func deadLetters(name: CommandName) async throws {
    let rig = CommandRig()
    try await rig.run { (engine, handler) async throws in
      let store = engine.parts.store
      var batch = ReportBatch(
        namespace: CommandRig.shop, userID: 1000, context: CommonContext(members: []),
        quota: StoreQuota(bytesMax: 1 << 30, evictsOldest: false), app: nil)
      batch.types = [.init(type: ReportType("order")!, priority: .rest, isRealtime: false)]
      batch.arena = Array(#""n":1"#.utf8)
      batch.rows = (1...2).map { _ in .init(type: 0, createdTime: 1, body: 0..<5, metaBytes: 200) }
      _ = await store.append([batch])
      let claim = Claim(
        namespace: CommandRig.shop, kind: .meta, types: .all, itemsMax: 2, bytesMax: 1 << 20, metaBytesMax: 1 << 20,
        packetID: PacketID(high: 1, low: 1), unixMilliseconds: 1)
      let packet = try #require(try await store.turn(UploadCommit(claims: [claim])).first ?? nil)
      let cause = Disposition.DeadCause(status: 422, message: "no", unixMilliseconds: 1, attempts: 1)
      _ = try await store.turn(UploadCommit(dispositions: [.dead(packet.id, cause: cause)]))
      rig.insert(rig.request("c1", name))
      #expect(try await rig.reaches(.done, engine))
      #expect(try await CommandRig.answer(engine)?.result?.string == (name == .requeue ? "requeued 2" : "dropped 2"))
      let ledger = try await store.status()[CommandRig.shop]?[.meta]?.ledger
      #expect(ledger?[.dead] == 0 && ledger?[.removed] == (name == .requeue ? 0 : 2))
    }
  }

  @Test("a signed command accepts the store that it names, and no other one") func acceptsStore() async throws {
    let rig = CommandRig()
    let (old, new) = (StoreMark(id: 1), StoreMark(id: 2))
    try await rig.run(RefusedCommand.signing) { (engine, handler) async throws in
      for (id, mark, state, result) in [
        ("c1", new, .failed, "no store gave its identity yet"),
        ("c2", old, .failed, "the store that answered last is \(new), not \(old)"),
        ("c3", new, .done, "accepted \(new)"),
      ] as [(String, StoreMark, CommandState, String)] {
        if id == "c2" {
          for mark in [old, new] {
            _ = try await engine.parts.store.recognize(mark, knowsLess: false, in: CommandRig.shop)
          }
        }
        let request = rig.request(id, .acceptStore, ["store": .text(mark.description)])
        rig.insert(try request.signed(by: CommandRig.key))
        #expect(try await rig.reaches(state, engine, id))
        #expect(try await CommandRig.answer(engine, id)?.result?.string == result)
      }
      #expect(await engine.parts.store.records.store(of: CommandRig.shop)?.isTrusted == true)
    }
  }

  @Test(
    "a command that is not in order is refused with its reason, and never begins",
    arguments: RefusedCommand.all)
  func refusals(_ refused: RefusedCommand) async throws {
    let rig = CommandRig()
    try await rig.run(refused.rules) { (engine, handler) async throws in
      var request = rig.request("c1", .run, ["name": .text("restart-till")])
      refused.change(&request)
      rig.insert(request, refused.fields(request))
      #expect(try await rig.reaches(.refused, engine))
      let result = try await CommandRig.answer(engine)?.result?.string ?? ""
      #expect(result.contains(refused.words), "\(result)")
      #expect(await rig.rig.runs { await handler.counts.ends[CommandRig.shop] == [refused.label: 1] })
      #expect(rig.tools.asked.isEmpty)
      #expect(await rig.rig.runs { rig.lines.contains { $0.contains("a command was not carried out") } })
      let line = rig.lines.first { $0.contains("a command was not carried out") } ?? ""
      #expect(line.contains("cause=\(refused.label)") && !line.contains("restart-till"))
    }
  }

  @Test("a command whose record has no room for an answer never begins, and the log says so once") func noRoom()
    async throws
  {
    let rig = CommandRig()
    try await rig.run { (engine, handler) async throws in
      var fields = rig.request("c1", .run, ["name": .text("restart-till")]).fields.object ?? []
      let room = RecordRequest.fieldsBytesMax - JSONValue.object(fields).bytes.count
      fields.append(.init("note", .string(String(repeating: "x", count: room - 12))))
      rig.insert(rig.request("c1"), .object(fields))
      #expect(await rig.rig.runs { rig.lines.contains { $0.contains("has no room for an answer") } })
      // A later command is looked at, and carried out, beside it.
      rig.insert(rig.request("c2", .doctor))
      #expect(try await rig.reaches(.done, engine, "c2"))
      #expect(try await CommandRig.answer(engine) == nil && rig.tools.asked == ["doctor c2"])
      #expect(rig.lines.count { $0.contains("has no room for an answer") } == 1)
      rig.delete()
      #expect(
        try await rig.rig.runs {
          try await engine.parts.store.commands(of: CommandRig.shop, after: nil).records.map(\.id.text) == ["c2"]
        })
    }
  }

  @Test(
    "a path of collect matches part by part",
    arguments: [
      ("/var/log/app.log", true), ("/opt/app/state.json", true), ("/var/log/../log/app.log", false),
      ("/var/log/sub/app.log", false), ("/var/log//app.log", false), ("var/log/app.log", false), ("/var/log/.", false),
      ("/var/log/app.log/", false), ("/var/log/a\0.log", false), ("/etc/prism/keys/main.key", false), ("", false),
    ])
  func paths(path: String, isTaken: Bool) {
    #expect(CommandRig.rules().files.contains { CommandAction.matches(path, $0) } == isTaken)
  }

  @Test("a signed command is carried out where a key is configured") func signed() async throws {
    let rig = CommandRig()
    try await rig.run(RefusedCommand.signing) { (engine, handler) async throws in
      rig.insert(try rig.request("c1", .run, ["name": .text("restart-till")]).signed(by: CommandRig.key))
      #expect(try await rig.reaches(.done, engine))
      #expect(rig.tools.asked.count == 1)
    }
  }

  @Test("an id that began never begins again: not after a deletion, a change or a restart") func replays() async throws
  {
    let rig = CommandRig()
    let request = rig.request("c1", .run, ["name": .text("restart-till")])
    try await rig.run { (engine, handler) async throws in
      rig.insert(request)
      #expect(try await rig.reaches(.done, engine))
      rig.delete()
      #expect(try await rig.reaches(nil, engine))
      rig.insert(request)
      #expect(try await rig.reaches(.refused, engine))
      rig.change(request.id, .update, rig.request("c1", .flush, seconds: 7200).fields.bytes)
      #expect(await rig.rig.runs { await handler.counts.ends[CommandRig.shop]?["changed"] == 1 })
      rig.delete()
      #expect(try await rig.reaches(nil, engine))
    }
    try await rig.run { (engine, handler) async throws in
      rig.insert(request)
      #expect(try await rig.reaches(.refused, engine))
      #expect(await rig.rig.runs { await handler.counts.ends[CommandRig.shop] == ["replayed": 1] })
      rig.delete()
      #expect(try await rig.reaches(nil, engine))
      // As with a thousand of them while the server's clock was ahead.
      let store = engine.parts.store
      try await store.forget(store.commandMarks(of: CommandRig.shop).marks, of: CommandRig.shop)
      rig.insert(request)
      #expect(try await rig.reaches(.expired, engine))
      rig.delete()
      #expect(try await rig.reaches(nil, engine))
      rig.rig.time.advance(by: .seconds(3600))
      rig.insert(request)
      #expect(try await rig.reaches(.expired, engine))
      #expect(rig.tools.asked == ["run restart-till c1"])
    }
  }

  @Test("a command that was running when the daemon died ends as interrupted, and does not begin again")
  func interrupted() async throws {
    let rig = CommandRig()
    rig.tools.hold()
    try await rig.run { (engine, _) async throws in
      rig.insert(rig.request("c1", .run, ["name": .text("restart-till")]))
      #expect(await rig.rig.runs { rig.tools.asked.count == 1 })
      #expect(try await CommandRig.answer(engine)?.state == .running, "it was written down before it began")
    }
    try await rig.run { (engine, handler) async throws in
      #expect(try await rig.reaches(.failed, engine))
      #expect(try await CommandRig.answer(engine)?.result == "interrupted")
      #expect(await rig.rig.runs { await handler.counts.ends[CommandRig.shop] == ["interrupted": 1] })
      #expect(rig.tools.asked.count == 1)
    }
  }

  @Test("a record that runs nowhere ends as interrupted, also if the server changed it since")
  func interruptedAndChanged() async throws {
    let rig = CommandRig()
    rig.tools.hold()
    try await rig.run { (engine, _) async throws in
      rig.insert(rig.request("c1", .run, ["name": .text("restart-till")]))
      #expect(await rig.rig.runs { rig.tools.asked.count == 1 })
    }
    try await rig.run { (engine, handler) async throws in
      #expect(try await rig.reaches(.failed, engine))
      let running = CommandAnswer(.running, result: nil, stateTime: 1)
      rig.change(RecordID("c1")!, .update, running.written(into: rig.request("c1").fields).bytes)
      #expect(await rig.rig.runs { await handler.counts.ends[CommandRig.shop] == ["interrupted": 2] })
      #expect(rig.tools.asked.count == 1)
    }
  }

  @Test(
    "the server's clock says whether a command is expired, not this machine's, once it is proven",
    arguments: [-400, 400])
  func clock(days: Int64) async throws {
    let rig = CommandRig(serverAhead: .seconds(days * 86_400))
    try await rig.run { (engine, handler) async throws in
      rig.insert(rig.request("c1", seconds: 600))
      rig.insert(rig.request("c2", seconds: -1))
      #expect(try await rig.reaches(.done, engine, "c1"))
      if days > 0 {
        #expect(try await CommandRig.answer(engine, "c2") == nil, "the clock of this machine says otherwise")
        rig.rig.time.advance(by: .seconds(3600))
      }
      #expect(try await rig.reaches(.expired, engine, "c2"))
    }
  }

  @Test(
    "a step of the server's clock ends no command, which begins once the clock is right again", arguments: [40, -40],
    [true, false])
  func step(days: Int64, isSteady: Bool) async throws {
    let rig = CommandRig()
    try await rig.run { (engine, handler) async throws in
      if isSteady {
        #expect(await rig.rig.runs { engine.parts.puller.clocks[CommandRig.shop] != nil })
        rig.rig.time.advance(by: .seconds(7200))
        let uptime = rig.rig.time.uptime
        #expect(await rig.rig.runs { (engine.parts.puller.clocks[CommandRig.shop]?.uptime ?? .zero) > uptime })
      }
      let request = rig.request("c1", seconds: 86_400)
      rig.stepServer(by: .seconds(days * 86_400))
      rig.insert(request)
      let store = engine.parts.store
      #expect(try await rig.rig.runs { try await !store.commands(of: CommandRig.shop, after: nil).records.isEmpty })
      let uptime = rig.rig.time.uptime
      #expect(await rig.rig.runs { rig.rig.time.uptime > uptime + .seconds(60) })
      #expect(try await CommandRig.answer(engine) == nil, "it waits")
      rig.stepServer(by: .seconds(-days * 86_400))
      #expect(try await rig.reaches(.done, engine))
      #expect(await rig.rig.runs { await handler.counts.ends[CommandRig.shop] == ["done": 1] })
    }
  }

  @Test("commands of a namespace begin one at a time in their order, and one that is deleted before does not begin")
  func order() async throws {
    let rig = CommandRig()
    rig.tools.hold()
    try await rig.run { (engine, handler) async throws in
      for id in ["c1", "c2", "c3"] { rig.insert(rig.request(id, .run, ["name": .text("restart-till")])) }
      #expect(await rig.rig.runs { rig.tools.asked.count == 1 })
      #expect(try await CommandRig.answer(engine, "c2")?.state == .accepted)
      rig.delete("c2")
      #expect(try await rig.reaches(nil, engine, "c2"))
      #expect(rig.tools.asked == ["run restart-till c1"])
      rig.tools.go()
      #expect(try await rig.reaches(.done, engine, "c3"))
      #expect(rig.tools.asked == ["run restart-till c1", "run restart-till c3"])
    }
  }

  @Test("more commands than may wait are refused") func tooMany() async throws {
    let rig = CommandRig()
    rig.tools.hold()
    try await rig.run { (engine, handler) async throws in
      rig.insert(rig.request("c1", .run, ["name": .text("restart-till")], seconds: 20 * 86_400))
      #expect(await rig.rig.runs { rig.tools.asked.count == 1 })
      for number in 0..<(CommandHandler.waitingMax + 1) {
        rig.insert(rig.request("c\(number + 100)", .run, ["name": .text("restart-till")], seconds: 20 * 86_400))
      }
      #expect(await rig.rig.runs { await handler.counts.ends[CommandRig.shop]?["too_many"] == 1 })
      rig.tools.go()
      for number in 0..<CommandHandler.waitingMax {
        #expect(try await rig.reaches(.done, engine, "c\(number + 100)"), "\(number)")
      }
    }
  }

  @Test("every reason is a label of the metric") func labels() {
    let reasons: [CommandRefusal] = [
      .unreadable(.expires), .notAllowed(.run), .arguments(""), .unsigned, .wrongSignature, .changed, .replayed,
      .tooMany,
    ]
    #expect(Set(reasons.map(\.label)).isSubset(of: CommandCounts.results))
    #expect(reasons.dropFirst(3).allSatisfy { !$0.message.isEmpty })
  }
}
