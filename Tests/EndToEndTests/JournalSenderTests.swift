import Foundation
import Glibc
import PrismTestSupport
import Testing

@Suite struct JournalSenderTests {
  private static let remote = "/usr/lib/systemd/systemd-journal-remote"
  private static let namespaces = [
    "logs": """
    {url: URL, periodicTimerSecond: 1, allow: {users: [root]}, monitorList: [{type: journal}, {type: appCrash}]}
    """
  ]

  @Test("no entry of the journal is root's because its other fields are too large or too many to be read")
  func senders() async throws {
    var random = SeededRandom(seed: Seed.next("JournalSenderTests"))
    // libsystemd cuts only values that it can compress.
    let large = (0..<5).map { index in
      let value = (0..<62_000).map { _ in Character(UnicodeScalar(UInt8.random(in: 33...126, using: &random))) }
      return "LARGE\(index)=\(String(value))"
    }
    let many = (0..<80).map { "FIELD\($0)=\($0)" }
    let entries: [(user: String?, fields: [String])] = [
      ("1000", []), ("1001", large), ("1002", many), ("1003", many + large), (nil, []), (nil, large),
      ("0", many + large),
    ]
    try await withHarness(namespaces: Self.namespaces, extra: "journal: {folder: journal, match: [{}]}") { harness in
      mkdir("\(harness.folder)/journal", 0o700)
      let start = Int64(Date().timeIntervalSince1970 * 1_000_000) - 60_000_000
      let text = entries.enumerated().map { number, entry in
        let fields =
          [
            "__REALTIME_TIMESTAMP=\(start + Int64(number) * 10)", "__MONOTONIC_TIMESTAMP=\(1_000_000 + number * 10)",
            "_BOOT_ID=0123456789abcdef0123456789abcdef",
          ] + entry.fields + ["MESSAGE=\(number)", "_TRANSPORT=journal", "_PID=\(100 + number)"]
          + (entry.user.map { ["_UID=\($0)"] } ?? [])
        return fields.joined(separator: "\n") + "\n\n"
      }.joined()
      let ran = try await Programs.run(Self.remote, ["-o", "\(harness.folder)/journal/a.journal", "-"], input: text)
      #expect(ran.exitCode == 0, "\(ran.error)")
      try await harness.startCollector()
      try await harness.startDaemon()
      try await waitUntil("root's entry is taken") {
        Harness.rows(try await harness.status(), "logs", "meta", "stored") > 0
      }
      try await harness.waitUntilSent(["logs"])
      let arrived = try await harness.query(
        "SELECT meta ->> 'MESSAGE', meta ->> 'SYS_PEER_UID' FROM report ORDER BY id")
      #expect(arrived.map { $0.map { String($0) } } == [["6", "0"]])
      Harness.expectIdentity(try await harness.status())
    }
  }
}
