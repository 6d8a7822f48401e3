import Foundation
import PrismRecovery
import PrismSQLite
import PrismTestSupport
import Synchronization
import Testing

/// A database that a kill left with its log, and what a start makes of it.
@Suite struct DatabasePlaceTests {
  private static let aside = "a.db.damaged-5"

  /// Ten commits of one frame each, all of them in the log.
  private static func make(_ folder: TemporaryFolder, onMove: (@Sendable () -> Void)? = nil) throws -> DatabasePlace {
    let place = DatabasePlace(folder.path, "a.db", pageBytes: 4096, companions: [".toc"], onMove: onMove)
    let database = try SQLiteConnection(.init(path: place.path))
    database.keepLogOnClose()
    try database.execute(
      "PRAGMA page_size = 4096; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE things (a)")
    for _ in 0..<10 { try database.execute("INSERT INTO things VALUES (1)") }
    try folder.write("contents", to: "a.db.toc")
    return place
  }

  private static func rows(_ path: String) throws -> Int64? {
    try SQLiteConnection(.init(path: path, isReadOnly: true)).firstInt("SELECT count(*) FROM things")
  }

  @Test(
    "commits behind a damaged frame are lost by damage, but the last one may be torn where power was lost",
    arguments: [
      (commitsBehind: 0, isSameBoot: true, isSound: true), (0, false, true), (1, true, false), (1, false, true),
    ]
      + [(2, true, false), (2, false, false)])
  func log(commitsBehind: Int, isSameBoot: Bool, isSound: Bool) throws {
    let folder = TemporaryFolder(in: "/dev/shm")
    let place = try Self.make(folder)
    let file = try FileHandle(forUpdating: URL(filePath: place.path + "-wal"))
    try file.seek(toOffset: file.seekToEnd() - UInt64(commitsBehind * 4120 + 100))
    try file.write(contentsOf: Data([0xA5]))
    var log: WriteAheadLog?
    do throws(SQLiteError) {
      log = try place.soundLog(isSameBoot: isSameBoot)
    } catch { #expect(error.isCorruption && error.message.contains("before \(commitsBehind) whole commits")) }
    #expect((log != nil) == isSound && log?.hasDamagedFrame ?? true)
    if let log { try place.cut(log) }
    if commitsBehind == 0 { #expect(try place.soundLog(isSameBoot: true)?.hasDamagedFrame == false) }
  }

  enum Found: Sendable { case there, missing, fault }

  @Test(
    "an emptied file, and one that is missing beside its log, is a fault; without a log it was removed",
    arguments: [
      (bytes: Int?.none, logBytes: Int?.none, found: Found.missing), (nil, 20, .missing), (nil, 32, .fault),
      (0, nil, .fault), (0, 100, .fault), (100, nil, .there), (100, 100, .there),
    ])
  func presence(bytes: Int?, logBytes: Int?, found: Found) throws {
    let folder = TemporaryFolder(in: "/dev/shm")
    for (name, count) in [("a.db", bytes), ("a.db-wal", logBytes)] {
      if let count { try folder.write(String(repeating: "x", count: count), to: name) }
    }
    let place = DatabasePlace(folder.path, "a.db", pageBytes: 4096)
    let isThere = try? place.isThere()
    #expect((isThere.map { $0 ? Found.there : .missing } ?? .fault) == found)
  }

  enum Harm: CaseIterable, Sendable { case sound, emptied, missing }

  @Test(
    "killed after any file that was moved: the next start finishes it, and SQLite reads the log",
    arguments: Harm.allCases,
    0...3)
  func killed(harm: Harm, moved: Int) throws {
    let (folder, remains) = (TemporaryFolder(in: "/dev/shm"), TemporaryFolder(in: "/dev/shm"))
    let steps = Mutex(0)
    let copy = { @Sendable in
      for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
        try FileManager.default.copyItem(atPath: folder(name), toPath: remains(name))
      }
    }
    let place = try Self.make(folder) {
      let step = steps.withLock {
        $0 += 1
        return $0
      }
      if step == moved { try? copy() }
    }
    if harm == .emptied { #expect(truncate(place.path, 0) == 0) }
    if harm == .missing { #expect(unlink(place.path) == 0) }
    if moved == 0 { try copy() }
    place.move(to: Self.aside)
    for path in [folder.path, remains.path] {
      let rest = DatabasePlace(path, "a.db", pageBytes: 4096, companions: [".toc"])
      for _ in 0..<2 { rest.move(to: Self.aside) }
      #expect(try FileManager.default.contentsOfDirectory(atPath: path).allSatisfy { $0.hasPrefix(Self.aside) })
      #expect(rest.aside("damaged").map(\.name) == [Self.aside] && rest.aside("corrupt").isEmpty)
      #expect(try Self.rows(rest.path(of: Self.aside)) == 10)
      rest.moveBack(Self.aside)
      #expect(try Self.rows(rest.path) == 10)
      #expect(FileManager.default.fileExists(atPath: path + "/a.db.toc"))
    }
  }

  @Test("a log that is there already is not moved over") func foreignLog() throws {
    let folder = TemporaryFolder(in: "/dev/shm")
    let place = try Self.make(folder)
    try folder.write("older", to: Self.aside + "-wal")
    let name = place.freeName("damaged", unixMilliseconds: 5)
    #expect(name != Self.aside)
    place.move(to: name)
    #expect(try Self.rows(place.path(of: name)) == 10)
  }

  @Test(
    "the disk, the rights and the program's own refusals are not the file's fault",
    arguments: [
      (26, true), (11, true), (522, true), (1, true), (8, true), (20, true), (13, false), (10, false), (14, false),
      (-1, false),
    ])
  func faults(code: Int32, isFault: Bool) throws {
    let place = try Self.make(TemporaryFolder(in: "/dev/shm"))
    _ = place  // the folder is gone with it: nothing may be written there
    let folder = TemporaryFolder(in: "/dev/shm")
    let there = try Self.make(folder)
    #expect(there.isFault(SQLiteError(code: code, message: "")) == isFault)
    #expect(there.isDamage(SQLiteError(code: code, message: "")) == [8, 11, 26, 522].contains(code))
    #expect(place.isFault(SQLiteError(code: code, message: "")) == (isFault && code != 8))
  }
}
