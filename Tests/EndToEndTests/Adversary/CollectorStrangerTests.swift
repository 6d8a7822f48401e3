import Foundation
import Glibc
import PrismTestSupport
import Testing

/// Attacks on the collector as a program by other users of the machine, holders of a sender's token and web pages. Bombs of
/// holders of a key: `CollectorBombTests`.
@Suite(.serialized, .enabled(if: Crowd.isPermitted, Crowd.why), .timeLimit(.minutes(30)))
struct CollectorStrangerTests {
  private let sender = "sender-token-of-tests", reader = "reader-token-of-tests"

  @Test(
    "a sender reads nothing, a stranger opens no socket, a web page no address, and no request makes labels, rows or lines"
  )
  func strangers() async throws {
    let port = try Harness.freePort()
    try await withHarness(namespaces: [:]) { harness in
      for (name, token) in [("senders", sender), ("readers", reader)] {
        let path = "\(harness.folder)/\(name)"
        try (token + "\n").write(toFile: path, atomically: true, encoding: .utf8)
        chmod(path, 0o600)
      }
      chmod(harness.folder, 0o755)
      try await harness.startCollector([
        "--token-file", "\(harness.folder)/senders", "--reader-token-file", "\(harness.folder)/readers",
        "--reader-listen", "127.0.0.1:\(port)",
      ])
      try await expectUnreadable(harness, "http://127.0.0.1:\(port)")
      try await expectNoTraces(harness, "http://127.0.0.1:\(port)")
    }
  }

  private static func status(_ arguments: [String]) async throws -> String {
    let words = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", patience.secondsText] + arguments
    return try await Programs.run("env", Crowd.prefix(Crowd.firstAttacker) + words).output
  }

  private func expectUnreadable(_ harness: Harness, _ url: String) async throws {
    let bearer = { (token: String) in ["-H", "Authorization: Bearer \(token)"] }
    for path in ["/reports", "/reports/1", "/devices", "/metrics"] {
      #expect(try await Self.status(bearer(sender) + [url + path]) == "401", "\(path)")
      #expect(try await Self.status([url + path]) == "401", "\(path)")
      let own = try await Self.status(bearer(sender) + [harness.url + path])
      // The counts are shown to this machine; nothing of a report is in them.
      #expect((["401", "403", "404"] + (path == "/metrics" ? ["200"] : [])).contains(own), "\(path): \(own)")
      let page = bearer(reader) + ["-H", "Host: evil.example", url + path]
      #expect(try await Self.status(page) == "403", "\(path)")
      #expect(
        try await Self.status(["--unix-socket", harness.readerSocket, "http://prism\(path)"]) == "000", "\(path)")
    }
    #expect(try await Self.status(bearer(reader) + [url + "/reports"]) == "200")
  }

  /// Requests that nothing vouches for, each with names of its own.
  private func expectNoTraces(_ harness: Harness, _ url: String) async throws {
    let count = soakFactor > 1 ? 5000 : 300
    let word = "chosen-by-a-stranger"
    let linesBefore = Self.log(harness).count
    var config = ""
    for number in 0..<count {
      let isQuestion = number % 3 == 0
      let path = isQuestion ? "/prism/config?namespace=\(word)-\(number)" : "/prism/meta"
      config += "url = \"\(harness.url)\(path)\"\noutput = \"/dev/null\"\nheader = \"Expect:\"\n"
      for header in [
        "Prism-Version: 1", "Prism-Namespace: \(word)-\(number)", "Prism-Device-Id: \(word)-\(number)",
        "Prism-Key-Id: \(number % 2 == 0 ? "main" : word)", "Prism-Cipher: aes-128-gcm", "Prism-Item-Count: 1",
        "Prism-Packet-Id: 018bcfe5-6800-7000-8000-\(String(1_000_000_000_000 + number))",
        "Prism-Applied: \(word)", "User-Agent: \(word)", "Content-Type: application/vnd.prism.meta",
        number % 2 == 0 ? "Authorization: Bearer wrong-\(word)" : "Authorization: Bearer \(sender)",
      ] { config += "header = \"\(header)\"\n" }
      if !isQuestion { config += "data-binary = \"no packet at all \(word)\"\n" }
      config += "next\n"
    }
    let path = "\(harness.folder)/requests"
    try config.write(toFile: path, atomically: true, encoding: .utf8)
    chmod(path, 0o644)
    let words = ["curl", "-s", "--max-time", patience.secondsText, "-K", path]
    _ = try await Programs.run("env", Crowd.prefix(Crowd.firstAttacker) + words)
    for page in ["/metrics", "/devices", "/reports"] {
      let text = try await Programs.run("curl", ["-s", "-H", "Authorization: Bearer \(reader)", url + page]).output
      #expect(!text.isEmpty && !text.contains(word), "\(page): \(text.prefix(2000))")
    }
    let lines = Self.log(harness)
    #expect(lines.count - linesBefore <= 24, "\(lines.suffix(30))")
    #expect(!lines.contains { $0.contains("wrong-\(word)") || $0.contains(sender) || $0.contains(reader) })
    for table in ["streams", "packets", "blocks", "payloads"] {
      #expect(try await harness.query("SELECT count(*) FROM \(table)") == [["0"]], "\(table)")
    }
  }

  private static func log(_ harness: Harness) -> [Substring] {
    ((try? String(contentsOfFile: "\(harness.folder)/collector.log", encoding: .utf8)) ?? "").split(separator: "\n")
  }
}
