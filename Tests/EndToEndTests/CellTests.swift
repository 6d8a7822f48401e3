import Foundation
import Glibc
import PrismClient
import PrismTestSupport
import Testing

/// Two collectors with databases of their own, and a device that moves from one to the other (docs/scale.md, "Cells").
@Suite struct CellTests {
  private static let count = 10_000

  @Test(
    "a device moves to another cell with reports that wait: each is at one of the two, once", .timeLimit(.minutes(3)))
  func moves() async throws {
    try await withHarness(namespaces: [:]) { next in
      let shop = "url: URL\nmaxItem: 100\nmonitorList: [{type: sample}]\n"
      try await withHarness(namespaces: ["shop": shop]) { harness in
        // One key of the fleet.
        try FileManager.default.removeItem(atPath: "\(next.folder)/main.key")
        try FileManager.default.copyItem(atPath: "\(harness.folder)/main.key", toPath: "\(next.folder)/main.key")
        try await harness.startDaemon()
        for start in stride(from: 0, to: Self.count, by: 1000) {
          _ = try await harness.client().report(
            contentsOf: (start..<start + 1000).map { Sample.report($0, in: "shop") })
        }
        // The first cell takes a few packets, and asks for a pause.
        let limits = "\(harness.folder)/collector.yaml"
        try "devicePacketPerMinute: 20\n".write(toFile: limits, atomically: true, encoding: .utf8)
        try await harness.startCollector(["--config", limits])
        try await next.startCollector()
        try await waitUntil("the first cell has taken what it may") {
          try await harness.arrived("shop", "meta").count >= 2000
        }
        try harness.write(shop.replacing("URL", with: next.url), namespace: "shop")
        _ = try await harness.reload()
        try await harness.waitUntilSent(["shop"])
        let parts = [harness, next]
        var numbers: [[Int]] = []
        for part in parts { numbers.append(try await part.arrived("shop", "meta").map(\.number)) }
        #expect(!numbers[0].isEmpty && !numbers[1].isEmpty, "the device moved between its packets")
        #expect((numbers[0] + numbers[1]).sorted() == Array(0..<Self.count))
        let status = try await harness.status()
        #expect(Harness.rows(status, "shop", "meta", "delivered") == Self.count)
        #expect(Harness.rows(status, "shop", "meta", "dead") == 0)
        Harness.expectIdentity(status)
      }
    }
  }
}
