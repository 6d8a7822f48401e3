import Foundation
import Glibc
import PrismClient
import PrismProtocol
import Testing

@Suite(.timeLimit(.minutes(5))) struct CollectorLimitTests {
  @Test(
    "past a limit a device waits as long as the collector says, its other namespaces go on, and each report arrives once",
    arguments: [
      ("deviceRowPerDay: 20", "status 429: the device sent the 20 rows (deviceRowPerDay) that it may in a day"),
      (
        "quotas: [{namespace: shop, maxRow: 20}]",
        "status 507: the namespace shop has as many reports at rest as its quota of 20 allows"
      ),
    ])
  func waits(limit: String, told: String) async throws {
    let shop = "url: URL\nmaxItem: 10\nperiodicTimerSecond: 1\nmonitorList: [{type: sample}]\n"
    try await withHarness(namespaces: ["shop": shop, "site": shop]) { harness in
      let file = "\(harness.folder)/collector.yaml"
      try (limit + "\n").write(toFile: file, atomically: true, encoding: .utf8)
      try await harness.startCollector(["--config", file])
      try await harness.startDaemon()
      for start in stride(from: 0, to: 60, by: 10) {
        _ = try await harness.client().report(contentsOf: (start..<start + 10).map { Sample.report($0, in: "shop") })
      }
      try await waitUntil("the device waits") { try await harness.prismctl("explain", "shop").output.contains(told) }
      let taken = try await harness.arrived("shop", "meta").count
      #expect((20...29).contains(taken), "what finds room is taken whole")
      let status = try await harness.status()
      let kept = ["waiting", "claimed"].reduce(0) { $0 + Harness.rows(status, "shop", "meta", $1) }
      #expect(kept == 60 - taken, "nothing is lost, and nothing goes on")
      for command in ["status", "doctor"] {
        let shown = try await harness.prismctl(command).output
        #expect(shown.contains(told.prefix(10).suffix(3)), "\(shown)")
      }
      _ = try await harness.client().report(contentsOf: [Sample.report(60, in: "site")])
      if limit.hasPrefix("quotas") { try await harness.waitUntilSent(["site"]) }
      try await harness.endCollector(SIGTERM)
      try await harness.startCollector()
      // Another address of the collector has asked for no pause.
      let other = harness.url.replacing("127.0.0.1", with: "localhost")
      for namespace in ["shop", "site"] {
        try harness.write(shop.replacing("URL", with: other), namespace: namespace)
      }
      _ = try await harness.reload()
      try await harness.waitUntilSent(["shop", "site"])
      try await harness.expectArrived("shop", "meta", Array(0..<60))
      try await harness.expectArrived("site", "meta", [60])
      Harness.expectIdentity(try await harness.status())
    }
  }
}
