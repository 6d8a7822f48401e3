import Foundation
import Glibc
import PrismProtocol
import PrismTestSupport
import Testing

/// A fleet in one program (bench/devices.c), each device with a connection and a stream of its own. It posts to one collector with
/// default limits, beside strangers who hold the most of a large body back.
///
/// The long form (`make soak-adversary`) also measures times.
@Suite(.timeLimit(.minutes(15))) struct DeviceFleetTests {
  private static let isLong = soakFactor > 1

  private struct Seen: Decodable {
    let posts: Int, taken: Int, refused: Int, lost: Int, late: Int, never: Int
    let p99Seconds: Double
  }

  @Test("each of 2,000 devices is served, and no packet is refused or stored twice", arguments: [0, 300])
  func served(strangers: Int) async throws {
    try await withHarness(namespaces: [:]) { harness in
      let program = "\(harness.folder)/devices"
      let source = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../bench/devices.c").path
      let built = try await Programs.run("clang", ["-O2", "-o", program, source, "-lssl", "-lcrypto", "-lz"])
      try #require(built.exitCode == 0, "\(built.error)")
      try await harness.startCollector()
      let key = try String(contentsOfFile: "\(harness.folder)/main.key", encoding: .utf8)
      let ran = try await Programs.run(
        program,
        [
          "--to", harness.collectorAddress, "--key", key.trimmingCharacters(in: .whitespacesAndNewlines), "--devices",
          "2000",
          "--interval", "5", "--seconds", Self.isLong ? "120" : "12", "--strangers", "\(strangers)",
          // The first answers take as long as the machine needs: a slow one starves no device.
          "--patience", "240",
        ])
      try #require(ran.exitCode == 0, "\(ran.error)")
      let seen = try JSONDecoder().decode(Seen.self, from: Data(ran.output.utf8))
      print("fleet beside \(strangers) strangers: \(ran.output)")
      #expect(seen.never == 0 && seen.refused == 0 && seen.lost == 0, "\(ran.output)")
      if Self.isLong { #expect(seen.p99Seconds <= 1) }
      // A packet that was on its way at the end may be stored.
      let stored = try await harness.query(
        "SELECT count(DISTINCT device || n), count(*) FROM (SELECT device, json_extract(meta, '$.seq') AS n FROM report)"
      )
      let distinct = try #require(Int(stored[0][0]))
      #expect(distinct == Int(stored[0][1]), "each once")
      #expect((seen.taken * 10...seen.posts * 10).contains(distinct))
    }
  }
}
