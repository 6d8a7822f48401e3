import Foundation
import Glibc
import PrismBase
import PrismOutputs
import PrismProtocol
import PrismSQLite
import Testing

@testable import PrismCollector

/// `prism-collector backup` and `restore` on SQLite.
@Suite("A copy of the collector's databases") struct StoreBackupTests {
  private let rig = StoreRig()
  private var backup: StoreBackup { StoreBackup(state: rig.path) }
  private var folder: String { rig.path + "/copy" }

  private func fill(_ numbers: [Int]) async throws {
    try FleetDatabase.folder(rig.path).prepare()
    let store = try rig.sqlite()
    _ = try #require(await store.take(StoreRig.packet(numbers)))
    await store.close()
  }

  private func ids() async throws -> [Int64] {
    let store = try rig.sqlite()
    let ids = try await store.page(ReportFilter(scope: .everything)).map(\.id)
    await store.close()
    return ids.sorted()
  }

  private func files() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: rig.path).filter {
      $0.contains(".restored") || $0.contains("before")
    }
  }

  @Test("is made while a collector runs, and has what was answered") func whileRunning() async throws {
    try await fill([1])
    let store = try rig.sqlite()
    _ = try #require(await store.take(StoreRig.packet([2])))
    try backup.copy(to: folder) { _ in }
    await store.close()
    try await fill([3])
    #expect(try await ids().count == 3)
    try backup.restore(from: folder, now: 7) { _ in }
    #expect(try await ids().count == 2)
    #expect(try files() == ["before-restore-7"])
    let old = try SQLiteConnection(.init(path: rig.path + "/before-restore-7/collector.db"))
    #expect(try old.firstInt("SELECT sum(rows) FROM blocks") == 3)
  }

  @Test("a restored collector gives a new report no id that a lost one had") func newIDs() async throws {
    try await fill([1, 2])
    try backup.copy(to: folder) { _ in }
    try await fill([3, 4])
    let lost = try await ids()
    try backup.restore(from: folder, now: 7) { _ in }
    try await fill([5])
    let after = try await ids()
    #expect(after.count == 3 && after.last! > lost.last!)
  }

  @Test("a restored collector serves newer configuration than devices took since the copy, and all of it to each")
  func configuration() async throws {
    try await fill([1])
    let value = { [rig] (name: String) in
      try SQLiteConnection(.init(path: rig.path + "/fleet.db")).firstInt(
        "SELECT value FROM remote_facts WHERE name = '\(name)'") ?? 0
    }
    let version = { try value("version") }
    let set = { [rig] (version: Int) in
      try SQLiteConnection(.init(path: rig.path + "/fleet.db")).execute(
        "REPLACE INTO remote_facts VALUES ('version', \(version)), ('update_time', \(version * 2))")
    }
    let began = SystemTime().unixMilliseconds - 1
    for (copied, since, least) in [(5, 40, 41), (0, 0, 0)] {
      try set(copied)
      let folder = "\(folder)-\(copied)"
      try backup.copy(to: folder) { _ in }
      try set(since)
      try backup.restore(from: folder, now: Int64(copied)) { _ in }
      #expect(try version() >= least && (try version() > 0) == (copied > 0))
      // Devices that asked before the restore know less than what is not forgotten.
      let (updated, forgotten) = (try value("update_time"), try value("forgotten_time"))
      #expect((updated >= began) == (copied > 0) && updated == forgotten)
    }
  }

  @Test("is never put beside the log of the database before it") func oldLog() async throws {
    try await fill([1])
    try backup.copy(to: folder) { _ in }
    // The log of a collector that was killed: the pages of a later report.
    let store = try rig.sqlite()
    _ = try #require(await store.take(StoreRig.packet([2])))
    let log = try Data(contentsOf: URL(filePath: rig.path + "/collector.db-wal"))
    await store.close()
    try log.write(to: URL(filePath: rig.path + "/collector.db-wal"))
    try backup.restore(from: folder, now: 7) { _ in }
    #expect(try await ids().count == 1)
    #expect(FileManager.default.fileExists(atPath: rig.path + "/before-restore-7/collector.db-wal"))
  }

  @Test("a restore that was interrupted is run again") func again() async throws {
    try await fill([1])
    try backup.copy(to: folder) { _ in }
    try Data("half".utf8).write(to: URL(filePath: rig.path + "/collector.db.restored"))
    try backup.restore(from: folder, now: 7) { _ in }
    try backup.restore(from: folder, now: 8) { _ in }
    #expect(try await ids().count == 1)
  }

  enum Obstacle: CaseIterable { case running, damaged, missing, newer, twice, cutFleet, otherFleet, carried }

  @Test("what can't be restored or copied changes nothing, and says why", arguments: Obstacle.allCases)
  func refused(obstacle: Obstacle) async throws {
    try await fill([1])
    try backup.copy(to: folder) { _ in }
    try await fill([2])
    let copy = URL(filePath: folder + "/collector.db")
    var store: SQLitePacketStore?
    let words: String
    switch obstacle {
    case .running: (store, words) = (try rig.sqlite(), "is in use")
    case .damaged:
      var bytes = try Data(contentsOf: copy)
      for index in 8192..<bytes.count { bytes[index] = 0xFF }
      try bytes.write(to: copy)
      words = "collector.db"
    case .missing:
      try FileManager.default.removeItem(at: copy)
      words = "has no collector.db"
    case .newer:
      try SQLiteConnection(.init(path: copy.path)).execute(
        "PRAGMA user_version = 999; UPDATE facts SET value = 999 WHERE name = 'version'")
      words = "version 999"
    case .twice: words = "is there already"
    case .cutFleet, .otherFleet:
      try FileManager.default.removeItem(atPath: folder + "/fleet.db")
      let other = try SQLiteConnection(.init(path: folder + "/fleet.db"))
      if obstacle == .otherFleet { try other.execute("CREATE TABLE a (b); PRAGMA user_version = 5") }
      words = "fleet.db is no database of a collector"
    case .carried:
      try Data().write(to: URL(filePath: rig.path + "/carried"))
      words = "was carried to another database"
    }
    let error = #expect(throws: (any Error).self) {
      if obstacle == .twice {
        try backup.copy(to: folder) { _ in }
      } else {
        try backup.restore(from: folder, now: 7) { _ in }
      }
    }
    #expect("\(error.map { "\($0)" } ?? "")".contains(words), "\(error.map { "\($0)" } ?? "")")
    unlink(rig.path + "/carried")
    await store?.close()
    #expect(try await ids().count == 2)
    #expect(try !files().contains { $0.contains("before") })
  }
}
