import Foundation
import PrismHTTP
import PrismOutputs
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("Crashes that come back are noticed")
struct CrashWatchTests {
  private static func crash(_ rig: PageRig, _ number: Int) async throws {
    let packet = try StoreRig.packet(
      [number], type: "appCrash", payload: Array("#0 total ()\n#1 main ()".utf8),
      members: { _ in #""APP_NAME":"shop","APP_VERSION":"1.0""# })
    _ = try await rig.collector.store.take(packet)
  }

  /// Resolves the only group. - Returns: its fingerprint.
  private static func resolve(_ rig: PageRig) async throws -> String {
    try await crash(rig, 1)
    let groups = try await rig.json("/crashes", [("since", "0")])["groups"]?.array
    let fingerprint = try #require(groups?.first?["fingerprint"]?.string)
    let answer = await rig.collector.answerReader(
      PageRig.request(
        "/api/v1/crashes/\(fingerprint)/state", method: .post, headers: [("content-type", "application/json")],
        body: #"{"state":"resolved"}"#), isOwner: true)
    #expect(answer.status == 200)
    return fingerprint
  }

  private static func warnings(_ rig: PageRig) -> Int {
    rig.rig.logged.count { $0.contains("a resolved crash is back") }
  }

  private static func gauge(_ rig: PageRig, _ state: String) -> String? {
    rig.collector.counts.metrics.split(separator: "\n")
      .first { $0.hasPrefix("prism_collector_crash_groups{state=\"\(state)\"} ") }?
      .split(separator: " ").last.map(String.init)
  }

  @Test("a look notices a regression that no reader asks for, once, and the metric counts it")
  func looks() async throws {
    let rig = try PageRig()
    let fingerprint = try await Self.resolve(rig)
    #expect(try await CrashWatch(rig.collector).look() == false)
    #expect((Self.gauge(rig, "resolved"), Self.gauge(rig, "regressed")) == ("1", "0"))
    #expect(Self.warnings(rig) == 0)
    try await Self.crash(rig, 2)
    for _ in 0..<3 { #expect(try await CrashWatch(rig.collector).look() == false) }
    #expect(Self.warnings(rig) == 1)
    #expect((Self.gauge(rig, "resolved"), Self.gauge(rig, "regressed")) == ("0", "1"))
    let state = try await rig.collector.access.page.crashStates.all().first { $0.fingerprint == fingerprint }
    #expect(state?.condition == .regressed)
  }

  @Test("without a resolved group a look reads no report")
  func idle() async throws {
    let rig = try PageRig()
    try await Self.crash(rig, 1)
    #expect(try await CrashWatch(rig.collector).look() == false)
    #expect(await rig.collector.access.page.crashes.cursor == 0)
  }

  @Test("a collector that serves looks each minute")
  func serves() async throws {
    let rig = try PageRig()
    _ = try await Self.resolve(rig)
    try await Self.crash(rig, 2)
    let run = Task { await CrashWatch(rig.collector).run() }
    while Self.warnings(rig) < 1 || rig.rig.time.sleeperCount == 0 { await Task.yield() }
    _ = try await Self.resolve(rig)
    try await Self.crash(rig, 3)
    #expect(Self.warnings(rig) == 1)
    rig.rig.time.advance(by: CrashWatch.interval)
    while Self.warnings(rig) < 2 { await Task.yield() }
    run.cancel()
    await run.value
  }

  @Test("reports that are no crashes are read once: the next look goes on behind them", arguments: StoreKind.allCases)
  func goesOn(kind: StoreKind) async throws {
    let rig = StoreRig()
    let store = try await rig.store(kind == .sqlite ? .sqlite : .postgresql)
    _ = try await store.take(StoreRig.packet([1], type: "appCrash"))
    _ = try await store.take(StoreRig.packet(Array(2...40), device: "e"))
    let index = CrashIndex()
    #expect(try await index.refresh(store, time: rig.time))
    let newest = try #require(try await store.page(ReportFilter(scope: .everything)).last?.id)
    #expect(await index.cursor >= newest)
    #expect(await index.groups().values.first?.count == 1)
    _ = try await store.take(StoreRig.packet([41], device: "f", type: "appCrash"))
    #expect(try await index.refresh(store, time: rig.time))
    #expect(await index.groups().values.first?.count == 2)
    await store.close()
  }

  enum StoreKind: CaseIterable { case sqlite, postgresql }
}
