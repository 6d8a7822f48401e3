import Foundation
import Glibc
import PrismProtocol
import Testing

@Suite struct LogTests {
  private static let shop = "url: URL\nmonitorList: [{type: order}]\nperiodicTimerSecond: 1\n"

  @Test("with all standard descriptors closed prismd serves, and its log goes into no file that it opens")
  func closed() async throws {
    let prefix = ["sh", "-c", #"exec "$@" <&- >&- 2>&-"#, "sh"]
    try await withHarness(namespaces: ["shop": Self.shop], daemonPrefix: prefix) { harness in
      try await harness.startDaemon()
      try await send(harness)
      let process = try #require(harness.daemonProcess)
      for number in 0...2 {
        let place = "/proc/\(process)/fd/\(number)"
        #expect(try FileManager.default.destinationOfSymbolicLink(atPath: place) == "/dev/null")
      }
      try await harness.endDaemon(SIGTERM)
      for name in try FileManager.default.contentsOfDirectory(atPath: "\(harness.folder)/state") {
        let bytes = try Data(contentsOf: URL(filePath: "\(harness.folder)/state/\(name)"))
        #expect(bytes.range(of: Data("takes reports".utf8)) == nil, "\(name)")
      }
    }
  }

  @Test("a full pipe without a reader keeps neither reports, reloads nor the stop waiting")
  func full() async throws {
    let fill = """
      import os, sys
      reader, writer = os.pipe()
      os.set_blocking(writer, False)
      try:
        while True: os.write(writer, b"x")
      except BlockingIOError: pass
      os.set_blocking(writer, True); os.set_inheritable(reader, True); os.dup2(writer, 2)
      os.execv(sys.argv[1], sys.argv[1:])
      """
    try await withHarness(namespaces: ["shop": Self.shop], daemonPrefix: ["python3", "-c", fill]) { harness in
      try await harness.startDaemon()
      try await send(harness)
      try harness.write(Self.shop + "nonsense: 1\n", namespace: "shop")
      #expect(try await harness.prismctl("reload").exitCode == 78)
      try await harness.endDaemon(SIGTERM)
    }
  }

  @Test("not a word of a report, a key or a token is in the logs, with any result for the report")
  func content() async throws {
    try await withHarness(namespaces: ["shop": Self.shop], extra: "log: {level: debug}") { harness in
      let secret = "s3cr3t-content-of-a-report"
      try await harness.startDaemon()
      try secret.write(toFile: "\(harness.folder)/payload", atomically: true, encoding: .utf8)
      for type in ["order", "nonsense"] {
        _ = try await harness.prismctl(
          "send", "--namespace", "shop", "--type", type, "--meta", #"{"\#(secret)":"\#(secret)"}"#, "--payload",
          "\(harness.folder)/payload")
      }
      for line in [#"{"type":"order","meta":{"a":"\#(secret)"#, #"{"\#(secret)":1}"#, #""\#(secret)""#] {
        _ = try await Programs.run("nc", ["-UN", harness.ingest], input: line + "\n")
      }
      try await waitUntil("the fault is logged") { harness.daemonLog.contains("warning") }
      let key = try String(contentsOfFile: "\(harness.folder)/main.key", encoding: .utf8).prefix(32)
      // A token that the daemon doesn't have: it is refused.
      try secret.write(toFile: "\(harness.folder)/tokens", atomically: true, encoding: .utf8)
      chmod("\(harness.folder)/tokens", 0o600)
      try await harness.startCollector(["--token-file", "\(harness.folder)/tokens"])
      _ = try await harness.prismctl("flush")
      try await waitUntil("it is refused") {
        try await harness.status()["namespaces"]?["shop"]?["lastFailure"]?["status"]?.int == 401
      }
      for log in ["prismd.log", "collector.log"] {
        let text = try String(contentsOfFile: "\(harness.folder)/\(log)", encoding: .utf8)
        #expect(!text.isEmpty && !text.contains(secret) && !text.contains(key), "\(text)")
      }
    }
  }

  private func send(_ harness: Harness) async throws {
    let sent = try await harness.prismctl("send", "--namespace", "shop", "--type", "order", "--meta", #"{"a":1}"#)
    #expect(sent.exitCode == 0, "\(sent.error)")
  }
}
