import Foundation
import Glibc
import PrismClient
import PrismProtocol
import PrismTestSupport
import Testing

/// `PRISM_E2E_RELOADS=1000` for the long form, `PRISM_SEED=…` for the same reloads again.
@Suite struct ReloadLoadTests {
  private static let reloads = Seed.number("PRISM_E2E_RELOADS") ?? 45
  /// After this number of reloads one is followed by a `kill -9` of the daemon.
  private static let reloadsPerKill = 15
  private static let writers = 4
  private static let names = ["live", "loaded", "now", "then"]

  private static func namespace(_ name: String, maxItem: Int) -> String {
    "url: URL\nperiodicTimerSecond: 1\nmaxItem: \(maxItem)\nmonitorList: [{type: sample, isUploadPayload: \(name == "loaded")}]\n"
  }

  @Test("reloads under load, with kills among them: nothing is lost or doubled, and what was written last is in force")
  func nothingIsLost() async throws {
    let seed = Seed.next("ReloadLoadTests, \(Self.reloads) reloads")
    let namespaces = Dictionary(uniqueKeysWithValues: Self.names.map { ($0, Self.namespace($0, maxItem: 100)) })
    try await withHarness(namespaces: namespaces) { harness in
      try await harness.startCollector()
      try await harness.startDaemon()
      let oracle = Oracle()
      try await withThrowingTaskGroup(of: Void.self) { group in
        for writer in 0..<Self.writers { group.addTask { try await Self.send(harness, writer, oracle) } }
        group.addTask { try await Self.reloadAtRandom(harness, oracle, seed) }
        try await group.waitForAll()
      }
      try await harness.waitUntilSent(Self.names)
      try await Self.check(harness, oracle)
    }
  }

  /// Each writer has a namespace and gives ids; what it has no answer to, and what is refused as a whole while its
  /// namespace is away, it sends again. Where the namespace goes or comes within the ten, what was refused of them stays
  /// away: sent again, it would rightly come after those that were stored.
  private static func send(_ harness: Harness, _ writer: Int, _ oracle: Oracle) async throws {
    let client = harness.client()
    let name = names[writer]
    var next = writer * KillTests.numbersPerWriter
    while !oracle.isOver {
      let numbers = next..<next + 10
      let reports = numbers.map { Sample.report($0, in: name, hasPayload: name == "loaded", hasID: true) }
      do throws(ClientError) {
        let answers = try await client.report(contentsOf: reports)
        oracle.note(answers, in: name, numbers: nil)
        if answers.contains(where: { if case .stored = $0 { true } else { false } }) { next += 10 }
      } catch .connectionLost, .unreachable {
        while !oracle.isOver, access(harness.ingest, F_OK) != 0 { try await Task.sleep(for: .milliseconds(10)) }
      } catch { throw error }
      try await Task.sleep(for: .milliseconds(20))
    }
  }

  // MARK: Reloading

  private enum Way: CaseIterable { case command, hangup, watched, refused, away }

  private static func reloadAtRandom(_ harness: Harness, _ oracle: Oracle, _ seed: UInt64) async throws {
    defer { oracle.end() }
    var random = SeededRandom(seed: seed)
    var ways: [Way: Int] = [:]
    for count in 1...reloads {
      let way = Way.allCases.randomElement(using: &random)!
      ways[way, default: 0] += 1
      do { try await reload(harness, way, maxItem: 10 + count % 90, &random) } catch {
        throw Failed("reload \(count), \(way): \(error); \(await harness.diagnosis)")
      }
      if count % reloadsPerKill == 0 {
        try await harness.endDaemon(SIGKILL)
        try await harness.startDaemon()
      }
    }
    print("ReloadLoadTests: \(ways.map { "\($0.value) \($0.key)" }.sorted().joined(separator: ", "))")
  }

  private static func reload(
    _ harness: Harness, _ way: Way, maxItem: Int, _ random: inout SeededRandom
  ) async throws {
    let before = try await harness.generation()
    let name = names.randomElement(using: &random)!
    switch way {
    case .command, .hangup, .watched:
      try harness.write(namespace(name, maxItem: maxItem), namespace: name)
      if way == .hangup { harness.signalDaemon(SIGHUP) }
      if way == .command {
        try await harness.reload()
      } else {
        try await waitUntil("\(name) has maxItem \(maxItem)") {
          try await harness.inForce("maxItem", of: name) == .int(maxItem)
        }
      }
      #expect(try await harness.inForce("maxItem", of: name) == .int(maxItem))
    case .refused:
      try harness.write(namespace(name, maxItem: 0), namespace: name)
      let refused = try await harness.prismctl("reload")
      #expect(refused.exitCode == 78 && refused.error.contains("maxItem: is 0, must be 1...1000"), "\(refused)")
      #expect(try await harness.status()["configFaults"]?.array?.count == 1)
      try harness.write(namespace(name, maxItem: maxItem), namespace: name)
      try await harness.reload()
      #expect(try await harness.status()["configFaults"] == [])
    case .away:
      try harness.write("retired: true\n", namespace: "then")
      try await harness.reload()
      #expect(try await harness.status()["namespaces"]?["then"]?["state"] == "retired")
      try harness.write(namespace("then", maxItem: maxItem), namespace: "then")
      try await harness.reload()
      #expect(try await harness.status()["namespaces"]?["then"]?["state"] != "retired")
    }
    #expect(try await harness.generation() >= before)
  }

  private static func check(_ harness: Harness, _ oracle: Oracle) async throws {
    let status = try await harness.status()
    Harness.expectIdentity(status)
    for name in names {
      for kind in name == "loaded" ? ["meta", "payload"] : ["meta"] {
        try await harness.expect(oracle[name], name, kind, status)
        #expect(Set(try await harness.arrived(name, kind).map(\.reportID)).isSuperset(of: oracle[name].stored))
      }
    }
    #expect(try await harness.query("SELECT count(*) FROM report WHERE chain_broken") == [["0"]])
    #expect(oracle.storedCount > 0)
    let refusals = oracle.refusals.filter { $0.key != "unknown_namespace" && $0.key != "duplicate" }
    #expect(refusals.isEmpty, "reloads refuse no report whose namespace is there")
    print("ReloadLoadTests: \(oracle.storedCount) answered `stored`, refused \(oracle.refusals)")
  }
}
