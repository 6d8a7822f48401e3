import Glibc
import PrismBase
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// A primary whose commits wait for a standby.
@Suite("A database with a standby")
struct StandbyTests {
  private struct Pair {
    let primary: PostgreSQLServer, standby: PostgreSQLServer
    let rig: PostgreSQLRig

    init() async throws {
      primary = try await PostgreSQLServer()
      rig = try await PostgreSQLRig(primary)
      standby = try await PostgreSQLServer(standbyOf: primary, named: "s1")
      try primary.set(["synchronous_standby_names = 'ANY 1 (s1)'"])
      try await primary.sql("SELECT pg_reload_conf()")
      let attached = """
        SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'
          AND current_setting('synchronous_standby_names') <> ''
        """
      while try await primary.sql(attached) != [["1"]] {}
    }

    func store() throws -> PostgreSQLPacketStore {
      try rig.store(others: [standby]) { $0.commitDeadline = .seconds(2) }
    }
  }

  @Test(
    "a standby that is away: failures within the deadline, no receipt, no pile of connections", .timeLimit(.minutes(2)))
  func standbyAway() async throws {
    let pair = try await Pair()
    let store = try pair.store()
    _ = try await store.take(StoreRig.packet([1]))
    await pair.standby.signal(SIGINT)
    let packet = try StoreRig.packet([2])
    for round in 0..<20 {
      let started = SystemTime().uptime
      do {
        _ = try await store.take(packet)
        Issue.record("round \(round): what only one machine has was receipted")
      } catch {}
      #expect(SystemTime().uptime - started < .seconds(30))
    }
    #expect(store.failure != nil)
    let waiting =
      try await pair.rig.value(
        "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'prism-collector'"
      ).flatMap { Int($0) } ?? 99
    #expect(waiting <= 4, "the group, the probe, the reader and the upkeep")
    try await pair.standby.start()
    while store.failure != nil { await Task.yield() }
    // The first try was committed after all.
    #expect(try await store.take(packet) == .duplicate)
    #expect(try await store.take(StoreRig.packet([3], after: packet.id)) == .stored(chainIsBroken: false))
    await store.close()
  }

  @Test(
    "a commit whose wait is cancelled is on one machine only: no receipt, not for the same packet again either",
    .timeLimit(.minutes(2)))
  func cancelledCommit() async throws {
    let pair = try await Pair()
    let store = try pair.rig.store(others: [pair.standby]) { $0.commitDeadline = .seconds(60) }
    _ = try await store.take(StoreRig.packet([1]))
    await pair.standby.signal(SIGINT)
    let packet = try StoreRig.packet([2])
    let answer = Task { try await store.take(packet) }
    let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query = 'COMMIT'"
    while try await pair.primary.sql(cancel).isEmpty {}
    await #expect(throws: StoreFailure.self) { try await answer.value }
    #expect(rigLogs(pair.rig, "no standby confirmed"))
    #expect(try await pair.rig.value("SELECT sum(rows) FROM blocks") == "2", "it was committed here")
    await #expect(throws: StoreFailure.self) { try await store.take(packet) }
    try await pair.standby.start()
    while store.failure != nil { await Task.yield() }
    #expect(try await store.take(packet) == .duplicate)
    await store.close()
  }

  private func rigLogs(_ rig: PostgreSQLRig, _ words: String) -> Bool { rig.logged.contains { $0.contains(words) } }

  @Test("the primary is killed, the standby promoted: nothing that was answered is lost", .timeLimit(.minutes(3)))
  func promotion() async throws {
    let pair = try await Pair()
    let stores = [try pair.store(), try pair.store()]
    let answered = try await withThrowingTaskGroup(of: Int.self) { group in
      for (index, store) in stores.enumerated() {
        group.addTask { await ReplicaTests.send(200, device: "d\(index)", to: store) }
      }
      group.addTask {
        while try await pair.rig.value("SELECT sum(rows) > 50 FROM blocks") != "t" {}
        await pair.primary.signal(SIGKILL)
        // Its own standby is missing now.
        try await pair.standby.sql("ALTER SYSTEM SET synchronous_standby_names = ''")
        try await pair.standby.sql("SELECT pg_promote()")
        return 0
      }
      return try await group.reduce(0, +)
    }
    #expect(answered == 400)
    let found = try await pair.standby.sql(
      "SELECT sum(rows), count(DISTINCT id) FROM blocks", in: pair.rig.database)
    #expect(found == [["400", "400"]])
    for store in stores { await store.close() }
  }
}
