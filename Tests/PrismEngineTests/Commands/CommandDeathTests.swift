import PrismPacket
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

@testable import PrismEngine

/// A daemon is killed at each step of a command, and starts again.
@Suite("Commands of a daemon that is killed") struct CommandDeathTests {
  struct Case: Sendable {
    var moment: CommandDeath.Moment
    /// How often the command was begun when the daemon died.
    var begun: Int
    var state: CommandState
    var result: JSONValue
  }

  private static let done: JSONValue = "did run restart-till c1"
  static let cases = [
    Case(moment: .accepted, begun: 0, state: .done, result: done),
    Case(moment: .begins, begun: 0, state: .failed, result: "interrupted"),
    Case(moment: .runs, begun: 1, state: .failed, result: "interrupted"),
    Case(moment: .ran, begun: 1, state: .failed, result: "interrupted"),
    Case(moment: .ended, begun: 1, state: .done, result: done),
    Case(moment: .uploaded, begun: 1, state: .done, result: done),
  ]

  @Test("a command begins at most once, whenever its daemon is killed, and the server learns its end", arguments: cases)
  func killed(_ one: Case) async throws {
    let rig = CommandRig()
    rig.death.comes(at: one.moment)
    try await rig.run { (engine, _) async throws in
      if one.moment == .accepted { try await wait(rig, engine) }
      rig.insert(rig.request("c1", .run, ["name": .text("restart-till")]))
      if one.moment == .accepted, try await rig.reaches(.accepted, engine) { rig.death.passes(.accepted) }
      #expect(await rig.rig.runs { rig.death.isOver })
      #expect(begun(rig) == one.begun)
    }
    let lost = rig.rig.transport.requests.count
    let total = max(one.begun, one.state == .done ? 1 : 0)
    for start in 1...2 {
      try await rig.run { (engine, _) async throws in
        #expect(try await rig.reaches(one.state, engine), "start \(start)")
        #expect(try await CommandRig.answer(engine)?.result == one.result)
        let isLearned = await rig.rig.runs {
          let states = rig.rig.transport.requests[lost...].flatMap { CommandRig.states(in: $0) }
          return states.last { $0.id == "c1" && $0.state == one.state }?.result == one.result
        }
        #expect(isLearned, "start \(start)")
        let store = engine.parts.store
        let isQuiet = try await rig.rig.runs { try await store.inFlight(CommandRig.shop, .records).isEmpty }
        #expect(isQuiet, "start \(start)")
        #expect(begun(rig) == total, "start \(start)")
      }
    }
    if one.moment == .uploaded {
      let ends = rig.rig.transport.requests.filter { !CommandRig.states(in: $0).isEmpty }.suffix(2)
      #expect(Set(ends.compactMap { $0.packetHeaders?.packetID }).count == 1, "the same packet came again")
    }
  }

  private func begun(_ rig: CommandRig) -> Int { rig.tools.asked.count { $0 == "run restart-till c1" } }

  /// Another command runs, and does not end.
  private func wait(_ rig: CommandRig, _ engine: Engine) async throws {
    rig.tools.hold()
    rig.insert(rig.request("c0", .run, ["name": .text("restart-till")]))
    #expect(await rig.rig.runs { rig.tools.asked == ["run restart-till c0"] })
  }
}
