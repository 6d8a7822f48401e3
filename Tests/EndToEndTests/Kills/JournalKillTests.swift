import Foundation
import Glibc
import PrismTestSupport
import Testing

/// `PRISM_E2E_JOURNAL_ENTRIES=100000` and `PRISM_E2E_JOURNAL_KILLS=50` for the long form (`make soak-inputs`).
@Suite struct JournalKillTests {
  private static let entries = Seed.number("PRISM_E2E_JOURNAL_ENTRIES") ?? 6000
  private static let kills = Seed.number("PRISM_E2E_JOURNAL_KILLS") ?? 4
  private static let rotatedEntries = 1000
  private static let remote = "/usr/lib/systemd/systemd-journal-remote"
  private static let namespaces = [
    "logs": "{url: URL, periodicTimerSecond: 1, maxItem: 1000, monitorList: [{type: journal}, {type: appCrash}]}"
  ]

  @Test("each entry of a journal that rotates arrives once, in order, while the daemon is killed and restarted")
  func exactlyOnce() async throws {
    let seed = Seed.next("JournalKillTests, \(Self.entries) entries, \(Self.kills) kills")
    let extra = "journal: {folder: journal, match: [{unit: shop.service, priority: 0..6}], sinceSecond: 31536000}"
    try await withHarness(namespaces: Self.namespaces, extra: extra) { harness in
      mkdir("\(harness.folder)/journal", 0o700)
      var random = SeededRandom(seed: seed)
      try await harness.startCollector()
      try await Self.write(0..<Self.rotatedEntries, harness)
      try await harness.startDaemon()
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
          for first in stride(from: Self.rotatedEntries, to: Self.entries, by: Self.rotatedEntries) {
            try await Self.write(first..<min(first + Self.rotatedEntries, Self.entries), harness)
          }
        }
        for _ in 0..<Self.kills {
          let goal =
            try await Self.stored(harness) + Int.random(in: 0...(Self.entries / (2 * Self.kills)), using: &random)
          try await waitUntil("entries are taken") { try await Self.stored(harness) >= min(goal, Self.entries) }
          try await harness.endDaemon(SIGKILL)
          try await harness.startDaemon()
        }
        try await group.waitForAll()
      }
      try await waitUntil("all are taken") { try await Self.stored(harness) >= Self.entries }
      try await harness.waitUntilSent(["logs"])
      let numbers = try await harness.query("SELECT meta ->> 'NUMBER' FROM report WHERE type = 'journal' ORDER BY id")
      #expect(numbers.map { $0[0] } == (0..<Self.entries).map { String($0) })
      Harness.expectIdentity(try await harness.status())
    }
  }

  /// Entries of two units, into a file of its own, as a rotation makes one.
  private static func write(_ numbers: Range<Int>, _ harness: Harness) async throws {
    let start = Int64(Date().timeIntervalSince1970 * 1_000_000) - 3_600_000_000
    var text = ""
    for number in numbers {
      for (unit, priority) in [("shop.service", 6), ("shop.service", 7), ("other.service", 3)] {
        text += """
          __REALTIME_TIMESTAMP=\(start + Int64(number) * 10)
          __MONOTONIC_TIMESTAMP=\(1_000_000 + number * 10)
          _BOOT_ID=0123456789abcdef0123456789abcdef
          _MACHINE_ID=fedcba9876543210fedcba9876543210
          _SYSTEMD_UNIT=\(unit)
          _UID=33
          _PID=4242
          _COMM=shop
          _TRANSPORT=journal
          PRIORITY=\(priority)
          MESSAGE=order \(number)
          NUMBER=\(number)


          """
      }
    }
    let file = "\(harness.folder)/journal/part-\(100_000 + numbers.lowerBound).journal"
    let ran = try await Programs.run(remote, ["-o", file, "-"], input: text)
    #expect(ran.exitCode == 0, "\(ran.error)")
  }

  private static func stored(_ harness: Harness) async throws -> Int {
    Harness.rows(try await harness.status(), "logs", "meta", "stored")
  }
}
