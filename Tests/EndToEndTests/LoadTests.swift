import PrismClient
import PrismProtocol
import Synchronization
import Testing

@Suite struct LoadTests {
  private static let connections = 8
  private static let reportsPerConnection = 12_500
  private static let names = ["live", "loaded", "away", "off"]
  private static let namespaces = [
    "live": "url: URL\nmonitorList: [{type: sample}]\n",
    "loaded": "url: URL\nmonitorList: [{type: sample, isUploadPayload: true}]\n",
    "away": "url: http://127.0.0.1:1\nmonitorList: [{type: sample}]\n",
    "off": "url: URL\nisUpload: false\nmonitorList: [{type: sample}]\n",
  ]

  @Test(
    "100,000 reports over 8 connections into 4 namespaces: live ones arrive once and byte for byte, the others wait")
  func exactlyOnce() async throws {
    try await withHarness(namespaces: Self.namespaces) { harness in
      try await harness.startCollector()
      try await harness.startDaemon()
      try await withThrowingTaskGroup(of: Void.self) { group in
        for connection in 0..<Self.connections {
          group.addTask { try await Self.send(harness.client(), connection) }
        }
        while !group.isEmpty {
          Harness.expectIdentity(try await harness.status())
          try await group.next()
        }
      }
      try await harness.waitUntilSent(["live", "loaded"])
      let perNamespace = Self.connections * Self.reportsPerConnection / 4
      let numbers = (0..<perNamespace).map { $0 * 4 }
      try await harness.expectArrived("live", "meta", numbers)
      for kind in ["meta", "payload"] { try await harness.expectArrived("loaded", kind, numbers.map { $0 + 1 }) }
      let status = try await harness.status()
      Harness.expectIdentity(status)
      for name in ["away", "off"] {
        #expect(Harness.rows(status, name, "meta", "stored") == perNamespace)
        #expect(Harness.rows(status, name, "meta", "delivered") == 0)
        #expect(try await harness.arrived(name, "meta").isEmpty)
      }
    }
  }

  /// The namespaces in turn; the number tells which.
  private static func send(_ client: PrismClient, _ connection: Int) async throws {
    let first = connection * reportsPerConnection
    for start in stride(from: first, to: first + reportsPerConnection, by: 500) {
      let reports = (start..<start + 500).map { Sample.report($0, in: names[$0 % 4], hasPayload: $0 % 4 == 1) }
      for answer in try await client.report(contentsOf: reports) {
        guard case .stored = answer else { throw Failed("\(answer)") }
      }
    }
  }
}
