import Foundation
import Glibc
import PrismClient
import PrismProtocol
import Testing

@Suite(.timeLimit(.minutes(5))) struct DeviceLimitTests {
  @Test("past its rows of a day a device waits with the others, says until when, and sends each once after that")
  func waits() async throws {
    let shop = "url: URL\nmaxItem: 10\nperiodicTimerSecond: 1\nmonitorList: [{type: sample}]\n"
    try await withHarness(namespaces: ["shop": shop]) { harness in
      let file = "\(harness.folder)/collector.yaml"
      try "deviceRowPerDay: 20\n".write(toFile: file, atomically: true, encoding: .utf8)
      try await harness.startCollector(["--config", file])
      try await harness.startDaemon()
      for start in stride(from: 0, to: 60, by: 10) {
        _ = try await harness.client().report(contentsOf: (start..<start + 10).map { Sample.report($0, in: "shop") })
      }
      try await waitUntil("the device waits") {
        try await harness.prismctl("explain", "shop").output.contains("its 20 rows of 24 hours, which end in")
      }
      let taken = try await harness.arrived("shop", "meta").count
      // Packets that were on their way when the limit was met are taken.
      #expect((20..<60).contains(taken))
      let told = try await harness.status()
      #expect(Harness.rows(told, "shop", "meta", "waiting") == 60 - taken, "nothing is lost, and nothing goes on")
      let day = try await Programs.run(
        "curl", ["-s", "--unix-socket", "\(harness.collectorState)/reader.sock", "http://localhost/api/v1/devices"])
      let device = try JSONValue(parsing: Array(day.output.utf8))["devices"]?.array?.first?["device"]?.string ?? ""
      let shown = try await Programs.run(
        "curl",
        ["-s", "--unix-socket", "\(harness.collectorState)/reader.sock", "http://localhost/api/v1/device?id=\(device)"])
      let used = try JSONValue(parsing: Array(shown.output.utf8))["day"]
      #expect(used?["isLimited"] == true && used?["rows"]?.int == taken && used?["rowsMax"] == 20, "\(shown.output)")
      try await harness.endCollector(SIGTERM)
      try await harness.startCollector()
      // Another address of the collector has asked for no pause.
      let other = harness.url.replacing("127.0.0.1", with: "localhost")
      try harness.write(shop.replacing("URL", with: other), namespace: "shop")
      _ = try await harness.reload()
      try await harness.waitUntilSent(["shop"])
      try await harness.expectArrived("shop", "meta", Array(0..<60))
      Harness.expectIdentity(try await harness.status())
    }
  }
}
