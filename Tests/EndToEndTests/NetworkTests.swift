import Foundation
import Glibc
import PrismClient
import PrismProtocol
import Testing

/// The network as the collector sees it: what arrives when links go, come, and are of another kind.
@Suite(.enabled(if: NetworkPair.isPermitted, NetworkPair.why))
struct NetworkTests {
  private static let shop = """
    url: URL
    periodicTimerSecond: 1
    meteredIntervalSecond: 0
    monitorList: [{type: sample}, {type: big, onlyWifi: true}]
    """

  private func send(_ harness: Harness, _ number: Int, type: String = "sample") async throws {
    var report = Sample.report(number, in: "shop")
    report.type = try #require(ReportType(type))
    let answer = try await harness.client().report(report)
    guard case .stored = answer else { throw Failed("\(answer)") }
  }

  private func expectArrived(_ harness: Harness, _ numbers: [Int]) async throws {
    var found: [Int] = []
    try await waitUntil("\(numbers) arrive", otherwise: "there are \(found)") {
      found = try await harness.arrived("shop", "meta").map(\.number).sorted()
      return found == numbers
    }
  }

  private func network(_ harness: Harness) async throws -> JSONValue {
    let ran = try await harness.prismctl("network", "--json")
    return try JSONValue(parsing: Array(ran.output.utf8))["network"] ?? .null
  }

  private func expectNetwork(_ harness: Harness, _ kind: String) async throws {
    try await waitUntil("the network is \(kind)") {
      try await network(harness)["kind"] == .string(kind)
    }
  }

  @Test(
    "a link that is down is waited for, and its coming back sends what waits", arguments: NetworkPair.Family.allCases)
  func downAndUp(family: NetworkPair.Family) async throws {
    try await NetworkPair.with(family) { pair in
      try await withHarness(across: pair, namespaces: ["shop": Self.shop]) { harness in
        try await send(harness, 1)
        try await expectArrived(harness, [1])
        try await pair.down("near")
        try await expectNetwork(harness, "none")
        try await send(harness, 2)
        let explained = try await harness.prismctl("explain", "shop", "sample").output
        #expect(
          explained.contains("sample meta: network: there is no network: no usable default route"), "\(explained)")
        try await pair.up("near")
        try await expectArrived(harness, [1, 2])
        #expect(try await network(harness)["interface"] == "near")
      }
    }
  }

  @Test(
    "links named as mobile ones are metered: onlyWifi rows stay, flow counts; a glob says otherwise",
    arguments: ["wwan0", "ppp0"])
  func metered(link: String) async throws {
    try await NetworkPair.with { pair in
      try await withHarness(across: pair, namespaces: ["shop": Self.shop]) { harness in
        try await expectNetwork(harness, "unmetered")
        try await pair.rename("near", to: link)
        try await expectNetwork(harness, "metered")
        let told = try await harness.prismctl("network").output
        #expect(
          told.contains("\(link) carries the default route; mobile and dial-up links count as metered"), "\(told)")
        try await send(harness, 1)
        try await send(harness, 2, type: "big")
        try await expectArrived(harness, [1])
        let status = try await harness.status()
        #expect(status["namespaces"]?["shop"]?["flow"]?["usedBytes"]?.int ?? 0 > 0)
        #expect(try await harness.prismctl("explain", "shop", "big").output.contains("big meta: onlyWifi: "))
        try harness.writeDaemonFile("network: {interfaces: {\"\(link.dropLast())*\": unmetered}}")
        try await harness.reload()
        try await expectArrived(harness, [1, 2])
        let overridden = try await harness.prismctl("network").output
        #expect(overridden.contains("network.interfaces \"\(link.dropLast())*\" says unmetered"), "\(overridden)")
      }
    }
  }

  @Test("an interface that is ignored is no way out")
  func ignored() async throws {
    try await NetworkPair.with { pair in
      let extra = "network: {interfaces: {near: ignored}}"
      try await withHarness(across: pair, namespaces: ["shop": Self.shop], extra: extra) { harness in
        try await send(harness, 1)
        #expect(try await network(harness)["kind"] == "none")
        try harness.writeDaemonFile("")
        try await harness.reload()
        try await expectArrived(harness, [1])
      }
    }
  }
}
