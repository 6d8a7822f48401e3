import Foundation
import PrismTestSupport
import Testing

@Suite("make run", .serialized)
struct DemoTests {
  @Test("without a terminal the demo says how long it takes, ends by itself and says what to do next")
  func ends() async throws {
    let ran = try await Programs.run("/usr/bin/env", ["python3", "scripts/run-demo", Programs.folder])
    #expect(ran.exitCode == 0, "\(ran.error)")
    let lines = ran.output.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    #expect(lines.first == "The demo takes about 10 s, and ends by itself.")
    #expect(ran.output.contains("Reports that came twice: 0."))
    let next = try #require(lines.firstIndex(of: "What to do next:"))
    #expect(lines[(next + 1)...].contains { $0.contains("/prismd --dev   starts such a pair that stays") })
    let query = try #require(lines.first { $0.contains("/prism-collector query ") }?.split(separator: "   ").first)
    let came = try await Programs.run("/bin/sh", ["-c", String(query)])
    #expect(came.lines.contains { $0.contains("sample-1") }, "as it says: \(query)\n\(came.error)")
    let page = try #require(lines.last { $0.contains("docs/") }?.split(separator: " ").first)
    #expect(FileManager.default.fileExists(atPath: String(page)))
    if let folder = lines.first(where: { $0.hasPrefix("  rm -r ") })?.split(separator: " ")[2] {
      try FileManager.default.removeItem(atPath: String(folder))
    }
  }
}
