import Foundation
import Glibc
import PrismHTTP
import Testing

/// Another program, of any user, has an address that is configured.
@Suite struct OccupiedAddressTests {
  @Test("an input whose address another program has keeps nothing else closed, and opens once that is free")
  func inputs() async throws {
    let (otlp, metrics) = (try ListeningSocket(address: "127.0.0.1:0"), try ListeningSocket(address: "127.0.0.1:0"))
    let ports = (otlp: otlp.port, metrics: metrics.port)
    let extra = """
      otlp: {listen: \(ports.otlp), namespace: shop}
      metrics: {listen: \(ports.metrics)}

      """
    try await withHarness(namespaces: ["shop": "monitorList: [{type: order}]\n"], extra: extra) { harness in
      try await harness.startDaemon()
      let send = ["send", "--namespace", "shop", "--type", "order", "--meta", #"{"n":1}"#]
      #expect(try await harness.prismctl(send).exitCode == 0)
      let doctor = try await harness.prismctl("doctor", "--config", harness.config)
      #expect(doctor.output.contains("another program listens there"), "\(doctor.output)")
      #expect(try await harness.prismctl("reload").exitCode == 0, "what was awaited before refuses no reload")
      for socket in [otlp, metrics] { close(socket.descriptor) }
      for url in ["http://127.0.0.1:\(ports.metrics)/readyz", "http://127.0.0.1:\(ports.otlp)/v1/logs"] {
        try await waitUntil("\(url) answers") { try await Programs.run("curl", ["-s", url]).exitCode == 0 }
      }
    }
  }

  @Test("a collector whose address for readers another program has takes packets, and serves readers later")
  func readers() async throws {
    let taken = try ListeningSocket(address: "127.0.0.1:0")
    let port = taken.port
    try await withHarness(namespaces: ["shop": "url: URL\nmonitorList: [{type: order}]\n"]) { harness in
      try await harness.startCollector(["--dev", "--reader-listen", "127.0.0.1:\(port)"])
      try await harness.startDaemon()
      let send = ["send", "--namespace", "shop", "--type", "order", "--meta", #"{"n":1}"#]
      #expect(try await harness.prismctl(send).exitCode == 0)
      #expect(try await harness.prismctl("flush", "--wait").exitCode == 0)
      close(taken.descriptor)
      let url = "http://127.0.0.1:\(port)/api/v1/reports"
      try await waitUntil("readers are served") {
        try await Programs.run("curl", ["-s", url]).output.contains("order")
      }
    }
  }
}
