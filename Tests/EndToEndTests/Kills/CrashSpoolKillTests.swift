import Foundation
import Glibc
import PrismTestSupport
import Testing

/// `PRISM_E2E_SPOOL_KILLS=50` for the long form.
@Suite struct CrashSpoolKillTests {
  private static let kills = Seed.number("PRISM_E2E_SPOOL_KILLS") ?? 5
  private static let spool = "spool"
  private static let namespaces = [
    "live": "{url: URL, periodicTimerSecond: 1, monitorList: [{type: app.Crash, isUploadPayload: true}]}"
  ]

  @Test("reports in the crash spool arrive once and whole, while the daemon is killed and while it is away")
  func exactlyOnce() async throws {
    let seed = Seed.next("CrashSpoolKillTests, \(Self.kills) kills")
    try await withHarness(namespaces: Self.namespaces, extra: "crashSpool: {folder: \(Self.spool)}") { harness in
      let folder = "\(harness.folder)/\(Self.spool)"
      mkdir(folder, 0o700)
      chmod(folder, 0o3733)
      var random = SeededRandom(seed: seed)
      try Self.leave(0..<100, in: folder)  // before the first start
      try await harness.startCollector()
      try await harness.startDaemon()
      var next = 100
      for _ in 0..<Self.kills {
        let count = Int.random(in: 1...300, using: &random)
        let before = try Folder.count(folder)
        try Self.leave(next..<next + count, in: folder)
        next += count
        let left = Int.random(in: 0...count, using: &random)
        try await waitUntil("some are taken") { try Folder.count(folder) <= before + 2 * left }
        try await harness.endDaemon(SIGKILL)
        try Self.leave(next..<next + 20, in: folder)
        next += 20
        try await harness.startDaemon()
      }
      try await waitUntil("all are taken") { try Folder.count(folder) == 0 }
      try await harness.waitUntilSent(["live"])
      try await Self.check(harness, count: next)
    }
  }

  /// As a crash handler does: the payload first, each under its name by a rename.
  private static func leave(_ numbers: Range<Int>, in folder: String) throws {
    for number in numbers {
      let stem = "\(folder)/live.app.Crash.n-\(number)"
      for (suffix, bytes) in [("payload", Sample.payload(number)), ("json", Array(#"{"n":\#(number)}"#.utf8))] {
        try Data(bytes).write(to: URL(filePath: "\(stem).\(suffix).tmp"))
        rename("\(stem).\(suffix).tmp", "\(stem).\(suffix)")
      }
    }
  }

  private static func check(_ harness: Harness, count: Int) async throws {
    Harness.expectIdentity(try await harness.status())
    let metas = try await harness.query("SELECT report_id, meta ->> 'n' FROM report WHERE kind = 'meta' ORDER BY id")
    let payloads = try await harness.query("SELECT report_id, hex(payload) FROM report WHERE kind = 'payload'")
    for (kind, rows) in [("meta", metas), ("payload", payloads)] {
      let ids = rows.map { $0[0] }
      #expect(Set(ids).count == ids.count, "\(kind): no report came twice")
      let missing = Set((0..<count).map { "n-\($0)" }).subtracting(ids).sorted()
      #expect(missing == [], "\(kind)")
    }
    #expect(metas.allSatisfy { $0[0] == "n-\($0[1])" })
    let expected = (0..<count).map { ["n-\($0)", Sample.payloadHex($0).uppercased()] }
    #expect(Set(payloads) == Set(expected))
  }

  private enum Folder {
    static func count(_ path: String) throws -> Int { try FileManager.default.contentsOfDirectory(atPath: path).count }
  }
}
