import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// The common information of a connection is a row of its own: while any row refers to it, it stays, and it leaves some time
/// after the last of them. `PRISM_SEED=N` replays a run, `PRISM_SOAK=N` makes it N times as long.
@Suite("Contexts of connections")
struct ContextTests {
  @Test(
    "no history of sessions, claims, dead letters, evictions and restarts takes a context from a row that has it",
    arguments: 0..<4)
  func referencedStay(run: Int) async throws {
    let history = ContextHistory(seed: SeededRandom.announcedSeed("contexts, run \(run)") &+ UInt64(run))
    try await history.open()
    for step in 0..<150 * soakFactor {
      let what = try await history.step()
      let found = try await history.looseRows()
      #expect(found == 0, "step \(step), \(what): rows whose context is gone")
      if found > 0 { break }
    }
    try await history.expectNoneLeft()
  }

  @Test("a sweep that a new session, a claim and a restart come between deletes no context that is in use")
  func betweenSlices() async throws {
    let rig = Rig()
    try await sweep(rig)
    #expect(try ContextHistory.looseRows(rig, [1]) == 0)
    let store = try await rig.open { $0.contextsBeforeSweep = 8 }
    while try await store.maintain() {}
    #expect(try ContextHistory.looseRows(rig, [1]) == 0)
    await store.close()
  }

  private func sweep(_ rig: Rig) async throws {
    let store = try await rig.open { $0.contextsBeforeSweep = 8 }
    let living = CommonContext(members: Array(#""APP_NAME":"living""#.utf8))
    for number in 0..<40 {
      // A session of its own each; the first sends nothing more for now, and lives on.
      let context = number == 0 ? living : CommonContext(members: Array(#""APP_NAME":"s\#(number)""#.utf8))
      _ = await store.append([rig.batch(number * 20..<number * 20 + 20, context: context)])
    }
    let packet = try #require(try await store.claim(rig.claim(items: 20)))
    var slices = 0
    while slices < 200, try await store.maintain() {
      slices += 1
      _ = await store.append([rig.batch(10_000 + slices * 20..<10_020 + slices * 20, context: living)])
    }
    #expect(try await store.read(packet.id)?.itemCount == 20)
    await store.close()
  }
}
