import PrismBase
import PrismSQL
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismCollector
@testable import PrismOutputs

/// Outputs and stores behind a pool that gives each transaction another session.
@Suite("Collectors behind pgbouncer in transaction mode", .timeLimit(.minutes(3)))
struct PooledOutputTests {
  private final class Sink: ReportOutput {
    private let state = Mutex<[Int]>([])
    var numbers: [Int] { state.withLock { $0 } }
    func deliver(_ reports: [StoredReport]) async throws(OutputFailure) -> [RefusedReport] {
      state.withLock { $0 += reports.compactMap { StoreRig.number($0) } }
      return []
    }
    func close() async {}
  }

  @Test(
    "two replicas hand each report on once, and the second takes over from one that stopped",
    .enabled(if: PgBouncer.isInstalled, "apt-get install pgbouncer"))
  func once() async throws {
    let rig = try await PostgreSQLRig()
    let pool = try PgBouncer(rig.server, sessions: 4)
    let target = try PostgreSQLTarget(uri: pool.uri(rig.database))
    try await Self.wait(for: target)
    let stores = try (0..<2).map { _ in
      try PostgreSQLPacketStore(.init(target: target, retention: Retention(days: 7), log: Logger(write: { _ in })))
    }
    let (sink, log) = (Sink(), Logger(write: { _ in }))
    let runners = stores.map {
      OutputRunner("x", from: $0.outputSource("x"), to: sink, time: SystemTime(), log: log)
    }
    let running = runners.map { runner in Task { await runner.run() } }
    for number in 0..<40 {
      let packet = try StoreRig.packet([number * 2, number * 2 + 1], device: "d\(number)")
      #expect(try await stores[number % 2].take(packet) == .stored(chainIsBroken: false))
    }
    while sink.numbers.count < 80 { await Task.yield() }
    var leading = 0
    for (index, runner) in runners.enumerated() where await runner.figures.isLeading {
      leading += 1
      running[index].cancel()
      await running[index].value
    }
    #expect(leading == 1)
    _ = try await stores[0].take(StoreRig.packet([80], device: "last"))
    while sink.numbers.count < 81 { await Task.yield() }
    #expect(sink.numbers.sorted() == Array(0...80), "each once")
    for (runner, task) in zip(runners, running) {
      task.cancel()
      await task.value
      #expect(await runner.figures.failures == 0)
    }
    while try await stores[1].maintain() {}
    #expect(try await stores[1].numbers().count == 81)
    for store in stores { await store.close() }
  }

  @Test("a leader that was frozen while another one took over moves the place no more")
  func frozen() async throws {
    let (rig, time) = (try await PostgreSQLRig(), ManualTime())
    let target = try PostgreSQLTarget(uri: rig.server.uri(rig.database))
    let setup = PostgreSQLSetup(target: target, deadline: .seconds(10))
    let (one, other) = (
      PostgreSQLOutputSource(setup, name: "x", time: time), PostgreSQLOutputSource(setup, name: "x", time: time)
    )
    #expect(try await one.lead())
    #expect(try await !other.lead())
    time.advance(by: .seconds(9))
    #expect(try await one.lead(), "it beats")
    #expect(try await !other.lead())
    time.advance(by: .seconds(9))
    #expect(try await !other.lead())
    time.advance(by: .seconds(11))
    #expect(try await other.lead())
    try await other.note(cursor: 5, refused: [])
    await #expect(throws: StoreFailure.self) {
      try await one.note(cursor: 9, refused: [RefusedReport(id: 9, cause: "late")])
    }
    #expect(try await !one.lead())
    #expect(try await one.cursor() == 5)
    #expect(try await other.deadCount() == DeadCount())
    await other.close()
    while try await !one.lead() {}
    await one.close()
  }

  @Test(
    "settings hold for each transaction and stay in no session of the pool",
    .enabled(if: PgBouncer.isInstalled, "apt-get install pgbouncer"))
  func settings() async throws {
    let rig = try await PostgreSQLRig()
    _ = try await rig.sql("ALTER DATABASE \(rig.database) SET synchronous_commit = off")
    let pool = try PgBouncer(rig.server, sessions: 1)
    let target = try PostgreSQLTarget(uri: pool.uri(rig.database))
    try await Self.wait(for: target)
    let (setup, by) = (PostgreSQLSetup(target: target, deadline: .seconds(10)).byIndex, Deadline(.seconds(10)))
    let connection = try setup.connect()
    let question = "SELECT current_setting('synchronous_commit') || current_setting('enable_seqscan')"
    let within = try connection.transaction(by: by) { () throws(PostgreSQLError) in
      try connection.query(question, by: by).text(0, 0)
    }
    #expect(within == "onoff")
    #expect(try connection.query(question, by: by).text(0, 0) == "offon")
  }

  private static func wait(for target: PostgreSQLTarget) async throws {
    let setup = PostgreSQLSetup(target: target, deadline: .seconds(5))
    for _ in 0..<500 {
      if (try? setup.connect()) != nil { return }
      try await Task.sleep(for: .milliseconds(20))
    }
    _ = try setup.connect()
  }
}
