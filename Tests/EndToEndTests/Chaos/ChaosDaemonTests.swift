import Foundation
import PrismBase
import PrismClient
import PrismProtocol
import Testing

/// The real daemon before the same collector. Its deadlines are the real ones: what stalls or asks for an hour is left to
/// `MisbehavingCollectorTests`.
@Suite("The daemon before a misbehaving collector", .timeLimit(.minutes(30)))
struct ChaosDaemonTests {
  private static let windows = ["a": 1, "b": 8, "c": 64, "d": 64]
  private static let names = windows.keys.sorted()
  private static let reportsPerNamespace = 300

  @Test("one answer in three is wrong, and it is killed three times: nothing is lost, nothing is applied twice")
  func oneInThree() async throws {
    let seed = Seed.next("ChaosDaemonTests")
    try await withHarness(namespaces: [:]) { harness in
      let key = try String(contentsOfFile: "\(harness.folder)/main.key", encoding: .utf8).filter(\.isHexDigit)
      let chaos = try ChaosCollector(
        folder: harness.collectorState, keys: ["main": Secret(try #require(Hex.decode(Array(key.utf8))))],
        choice: Misbehaviour.all.filter { !$0.isStall && !$0.asksForAnHour }, seed: seed)
      let server = WireServer { chaos.serve($0) }
      for name in Self.names {
        try harness.write(
          """
          url: \(server.url)
          periodicTimerSecond: 1
          maxItem: 10
          window: \(Self.windows[name] ?? 16)
          monitorList: [{type: sample, isUploadPayload: true}]
          """, namespace: name)
      }
      try await harness.startDaemon()
      let third = Self.reportsPerNamespace / 3
      for wave in 0..<3 {
        for name in Self.names {
          let reports = (wave * third..<(wave + 1) * third).map { Sample.report($0, in: name, hasPayload: true) }
          _ = try await harness.client().report(contentsOf: reports)
        }
        try await harness.endDaemon(SIGKILL)
        try await harness.startDaemon()
      }
      try await harness.waitUntilSent(Self.names)
      chaos.becomeHonest()
      _ = try await harness.prismctl("dead", "requeue", "--all")
      _ = try await harness.prismctl("flush")
      try await harness.waitUntilSent(Self.names)
      #expect(chaos.violations == [])
      for name in Self.names {
        for kind in RowKind.reports {
          let ledger = try await harness.status()["namespaces"]?[name]?[kind.name]?["ledger"]?.text ?? ""
          let applied = try await chaos.applied(name, kind).numbers
          let missing = Set(0..<third * 3).subtracting(applied).sorted()
          #expect(missing == [], "lost of \(name) \(kind): \(ledger)")
          #expect(Set(applied).count == applied.count, "came twice of \(name) \(kind): \(ledger)")
        }
      }
      Harness.expectIdentity(try await harness.status())
      print("ChaosDaemonTests: \(chaos.posts) posts, \(chaos.drawn.count) misbehaviours")
      server.stop()
    }
  }
}
