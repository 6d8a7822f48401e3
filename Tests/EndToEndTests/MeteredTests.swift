import Foundation
import Glibc
import PrismClient
import PrismProtocol
import Testing

/// A link that is no loopback: two network namespaces and a veth pair between them. Needs root.
@Suite(.enabled(if: getuid() == 0, "network namespaces need root"))
struct MeteredTests {
  private static let prism = """
    url: URL
    maxFlowMByte: 1
    meteredIntervalSecond: 0
    periodicTimerSecond: 1
    monitorList: [{type: sample, isUploadPayload: true}, {type: big, onlyWifi: true}]
    """

  @Test("on a metered network types with onlyWifi stay, and the flow ends at its limit, but for one packet at most")
  func flowIsKept() async throws {
    try await withNetwork { network in
      let harness = try await Harness(
        namespaces: ["shop": Self.prism], extra: #"network: {interfaces: {"*": metered}}"#,
        collectorAddress: "\(network.far):8480", daemonPrefix: network.inside("a"), collectorPrefix: network.inside("b")
      )
      do { try await Self.expectFlowKept(harness) } catch {
        await harness.stop()
        throw error
      }
      await harness.stop()
    }
  }

  private static func expectFlowKept(_ harness: Harness) async throws {
    try await harness.startCollector()
    try await harness.startDaemon()
    let client = harness.client()
    // 4 MiB that no compressor makes smaller, 64 KiB each.
    for number in 0..<64 {
      var random = SeededGenerator(seed: UInt64(number))
      var report = Sample.report(number, in: "shop")
      report.payload = (0..<65_536).map { _ in UInt8.random(in: 0...255, using: &random) }
      _ = try await client.report(report)
      report.type = ReportType("big")!
      report.payload = nil
      _ = try await client.report(report)
    }
    let limit = 1_048_576
    try await waitUntil("the flow is used up", within: .seconds(60)) {
      let flow = try await harness.status()["namespaces"]?["shop"]?["flow"]
      return flow?["usedBytes"]?.int ?? 0 >= limit
    }
    _ = try await harness.prismctl("flush", "shop")
    let status = try await harness.status()
    #expect(Harness.rows(status, "shop", "meta", "waiting") >= 64, "types with onlyWifi stay")
    #expect(Harness.rows(status, "shop", "payload", "waiting") > 0)
    let bytes = try await Programs.run("env", harness.collectorCommand(["curl", "-s", "\(harness.url)/metrics"])).lines
      .first { $0.hasPrefix("prism_collector_received_bytes_total ") }.flatMap { Int($0.split(separator: " ")[1]) }
    let received = try #require(bytes)
    #expect(received <= limit + 1_048_576 + 65_536, "one packet over the limit at most")
    #expect(try await harness.query("SELECT count(*) FROM reports WHERE type = 'big'") == [["0"]])
    #expect(try await harness.prismctl("network").output.contains("metered"))
  }

  private struct Network {
    let name: String
    let far: String
    func inside(_ side: String) -> [String] { ["ip", "netns", "exec", "\(name)-\(side)"] }
  }

  private func withNetwork(_ body: (Network) async throws -> Void) async throws {
    let network = Network(name: "prism-\(getpid())", far: "10.213.77.2")
    let (a, b) = ("\(network.name)-a", "\(network.name)-b")
    func ip(_ words: String) async throws {
      let ran = try await Programs.run("ip", words.split(separator: " ").map { String($0) })
      guard ran.exitCode == 0 else { throw Failed("ip \(words): \(ran.error)") }
    }
    do {
      try await ip("netns add \(a)")
      try await ip("netns add \(b)")
      try await ip("-n \(a) link add near type veth peer name far netns \(b)")
      try await ip("-n \(a) addr add 10.213.77.1/24 dev near")
      try await ip("-n \(b) addr add \(network.far)/24 dev far")
      try await ip("-n \(a) link set near up")
      try await ip("-n \(b) link set far up")
      try await ip("-n \(b) link set lo up")  // the way from the probe to its own address
      try await ip("-n \(a) route add default via \(network.far)")
      try await body(network)
    } catch {
      for name in [a, b] { try? await ip("netns del \(name)") }  // one of them may never have been made
      throw error
    }
    for name in [a, b] { try await ip("netns del \(name)") }
  }
}
