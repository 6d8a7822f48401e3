import Foundation
import Glibc
import PrismBase
import PrismOutputs
import PrismProtocol
import PrismSQLite
import PrismTestSupport
import Testing

@testable import PrismCollector

/// The promises of the store on SQLite beyond those of any store: time, retention, older versions.
@Suite("The collector's store on SQLite")
struct SQLiteStoreTests {
  private static let day: Duration = .seconds(86_400)

  private static func maintain(_ store: SQLitePacketStore) async throws {
    while try await store.maintain() {}
  }

  @Test("ids are forgotten after 30 days of service, but for the last 1,024 of a stream, over restarts, too")
  func forgetsIDs() async throws {
    let rig = StoreRig()
    var store = try rig.sqlite { $0.idsKept = 3 }
    // Of a device whose clock is ahead: by their time they are not old.
    let old = try (0..<5).map {
      try StoreRig.packet([$0], id: PacketID(high: UInt64(2_000_000_000_000 + $0) << 16 | 0x7000, low: 1))
    }
    for packet in old { _ = try await store.take(packet) }
    for _ in 0..<31 {
      rig.time.advance(by: Self.day)
      try await Self.maintain(store)
      await store.close()
      store = try rig.sqlite { $0.idsKept = 3 }
    }
    try await Self.maintain(store)
    // Down for 60 days, with a clock that says so: nothing ages.
    await store.close()
    rig.time.stepWallClock(milliseconds: 60 * 86_400_000)
    store = try rig.sqlite { $0.idsKept = 3 }
    try await Self.maintain(store)
    for packet in old[2...] { #expect(try await store.take(packet) == .duplicate) }
    // Ids that are forgotten are not taken for new ones.
    for packet in old[..<2] { #expect(try await store.take(packet) == .tooOld) }
    #expect(try await store.numbers() == [0, 1, 2, 3, 4])
    await store.close()
  }

  @Test("a device whose clock went back is still taken: its packets name the one before them")
  func deviceWithWrongClock() async throws {
    let rig = StoreRig()
    let store = try rig.sqlite { $0.idsKept = 1 }
    let time = { (number: Int) in PacketID(high: UInt64(number) << 16 | 0x7000, low: 1) }
    var last: PacketID?
    for number in [5000, 5001, 5002] {
      let packet = try StoreRig.packet([number], id: time(number), after: last)
      _ = try await store.take(packet)
      last = packet.id
    }
    rig.time.advance(by: Self.day * 32)
    try await Self.maintain(store)
    #expect(try await store.take(StoreRig.packet([1], id: time(17), after: last)) == .stored(chainIsBroken: false))
    let recorded = try StoreRig.packet([5001], id: time(5001), after: time(5000))
    #expect(try await store.take(recorded) == .tooOld, "a packet that was recorded and sent again")
    await store.close()
  }

  @Test("reports are deleted after retentionDay days of service, the others stay, and new ids go on")
  func retention() async throws {
    let rig = StoreRig()
    let store = try rig.sqlite { $0.retention.days = 7 }
    for number in 0..<20 {
      _ = try await store.take(StoreRig.packet(Array(number * 1000..<number * 1000 + 300)))
      rig.time.advance(by: Self.day)
      rig.time.stepWallClock(milliseconds: number % 2 == 0 ? 90 * 86_400_000 : -90 * 86_400_000)
      try await Self.maintain(store)
    }
    let numbers = try await store.numbers().compactMap { $0.map { $0 / 1000 } }
    #expect(Set(numbers) == Set(13..<20))
    var filter = ReportFilter(scope: .everything)
    filter.type = "t"
    #expect(try await store.numbers(filter).count == 7 * 300)
    await store.close()
    rig.time.advance(by: Self.day * 30)
    let again = try rig.sqlite { $0.retention.days = 7 }
    for _ in 0..<14 {
      rig.time.advance(by: Self.day)
      try await Self.maintain(again)
    }
    #expect(try await again.numbers() == [])
    _ = try await again.take(StoreRig.packet([1]))
    #expect(try #require(try await again.page(ReportFilter(scope: .everything)).first).id > 20 * 300, "ids only rise")
    await again.close()
  }

  @Test(
    "a database of another version is left as it is, and the start is refused with the remedy",
    arguments: [(9, "install the newer"), (4, "before the first published version")])
  func otherVersion(version: Int, remedy: String) async throws {
    let rig = StoreRig()
    await (try rig.sqlite()).close()
    let file = rig.path + "/collector.db"
    do {
      let killed = try SQLiteConnection(.init(path: file))
      killed.keepLogOnClose()
      try killed.execute(
        "UPDATE facts SET value = \(version) WHERE name = 'version'; PRAGMA user_version = \(version)")
    }
    let files = [file, file + "-wal"].map { URL(filePath: $0) }
    let bytes = try files.map { try Data(contentsOf: $0) }
    #expect { try rig.sqlite() } throws: { error in
      "\(error)".contains("of version \(version)") && "\(error)".contains(remedy)
    }
    #expect(try files.map { try Data(contentsOf: $0) } == bytes)
  }

  @Test("a database of the first build, which had no version, is left as it is") func firstBuild() throws {
    let rig = StoreRig()
    try SQLiteConnection(.init(path: rig.path + "/collector.db")).execute(
      "CREATE TABLE packets (packet TEXT); CREATE TABLE reports (id INTEGER PRIMARY KEY)")
    #expect { try rig.sqlite() } throws: {
      "\($0)".contains("of version 0") && "\($0)".contains("before the first published version")
    }
    #expect(!rig.names.contains { $0.contains("damaged") })
  }

  @Test(
    "a damaged version in the header stops no sender, and loses no report",
    arguments: [0, 1, 3, 6, 130, -2_147_483_646],
    [true, false])
  func damagedVersion(version: Int, hasSecondCopy: Bool) async throws {
    let rig = StoreRig()
    var store = try rig.sqlite()
    let packets = try (0..<3).map { try StoreRig.packet([$0]) }
    for packet in packets { _ = try await store.take(packet) }
    await store.close()
    do {
      let connection = try SQLiteConnection(.init(path: rig.path + "/collector.db"))
      if !hasSecondCopy { try connection.execute("DELETE FROM facts WHERE name = 'version'") }
      try connection.execute("PRAGMA user_version = \(version)")
    }
    store = try rig.sqlite()
    for packet in packets { #expect(try await store.take(packet) == .duplicate) }
    _ = try await store.take(StoreRig.packet([99]))
    try await Self.maintain(store)
    #expect(try await store.numbers() == [0, 1, 2, 99])
    await store.close()
  }

  @Test("a database without the second copy of its version is used as it is") func singleCopy()
    async throws
  {
    let rig = StoreRig()
    var store = try rig.sqlite()
    _ = try await store.take(StoreRig.packet([1]))
    await store.close()
    try SQLiteConnection(.init(path: rig.path + "/collector.db")).execute("DELETE FROM facts WHERE name = 'version'")
    store = try rig.sqlite()
    #expect(try await store.numbers() == [1])
    #expect(!rig.names.contains { $0.contains("damaged") })
    await store.close()
  }

  @Test("a fourth damaged database within an hour is not replaced: packets are refused with the cause, for the hour")
  func damagedAgain() async throws {
    let rig = StoreRig()
    for _ in 0..<3 {
      let store = try rig.sqlite()
      _ = try await store.take(StoreRig.packet([1]))
      await store.close()
      try rig.ruin()
    }
    let asides = { rig.names.filter { $0.contains("damaged-") && !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm") } }
    var store = try rig.sqlite()
    #expect(asides().count == 3)
    _ = try await store.take(StoreRig.packet([2]))
    await store.close()
    try rig.ruin()
    store = try rig.sqlite()
    for _ in 0..<2 {
      await #expect { try await store.take(StoreRig.packet([3])) } throws: {
        "\($0)".contains("4th time within an hour")
      }
      #expect(store.failure?.contains("4th time within an hour") == true)
      rig.time.advance(by: .seconds(70))
    }
    #expect(asides().count == 3)
    rig.time.advance(by: .seconds(3600))
    #expect(try await store.take(StoreRig.packet([4])) == .stored(chainIsBroken: false))
    #expect(store.failure == nil && asides().count == 4)
    await store.close()
  }

  @Test(
    "three starts that die set the database aside, and nothing is lost; if those die that read it, it is left unread",
    arguments: [2, 3, 11])
  func diedStarts(deaths: Int) async throws {
    let rig = StoreRig()
    let packet = try StoreRig.packet([1])
    var store = try rig.sqlite()
    _ = try await store.take(packet)
    await store.close()
    let boot = try String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)
    let starts = (1...deaths).map { "start \(rig.time.unixMilliseconds - Int64($0) * 1000)\n" }.joined()
    try "boot \(boot)log \(boot)\(starts)".write(
      toFile: rig.path + "/collector.run", atomically: true, encoding: .utf8)
    store = try rig.sqlite()
    #expect(rig.names.contains { $0.contains("damaged-") } == (deaths >= 3))
    #expect(rig.logged.contains { $0.contains("\(deaths) starts died before") } == (deaths >= 3))
    try await Self.maintain(store)
    let isRead = deaths < 11
    #expect(try await store.numbers() == (isRead ? [1] : []))
    #expect(try await store.take(packet) == (isRead ? .duplicate : .stored(chainIsBroken: false)))
    await store.close()
    // The deaths are over.
    store = try rig.sqlite()
    #expect(try await store.numbers() == [1])
    #expect(rig.names.count { $0.contains("damaged-") && !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm") } <= 1)
    await store.close()
  }

  @Test("a bit in the head that lets SQLite only read the file is damage: packets are taken, and no report is lost")
  func readOnlyHead() async throws {
    let rig = StoreRig()
    var store = try rig.sqlite()
    _ = try await store.take(StoreRig.packet([1]))
    await store.close()
    let file = open(rig.path + "/collector.db", O_RDWR | O_CLOEXEC)
    #expect(pwrite(file, [UInt8(10)], 1, 18) == 1)
    close(file)
    store = try rig.sqlite()
    _ = try? await store.take(StoreRig.packet([2]))
    #expect(try await store.take(StoreRig.packet([3])) == .stored(chainIsBroken: false))
    try await Self.maintain(store)
    #expect(try await Set(store.numbers()).isSuperset(of: [1, 3]))
    #expect(rig.names.contains { $0.contains("damaged-") } && store.failure == nil)
    await store.close()
  }

  @Test("a log whose database was brought over and deleted takes no other one away; an interrupted move is finished")
  func logWithoutDatabase() async throws {
    let rig = StoreRig()
    var store = try rig.sqlite()
    let packet = try StoreRig.packet([1])
    _ = try await store.take(packet)
    await store.close()
    try rig.ruin()
    let log = rig.path + "/collector.db.damaged-5-wal"
    try String(repeating: "x", count: 10_000).write(toFile: log, atomically: true, encoding: .utf8)
    store = try rig.sqlite()
    #expect(rig.names.contains("collector.db.damaged-5") && !rig.names.contains("collector.db.damaged-5-wal-wal"))
    try await Self.maintain(store)
    _ = try await store.take(packet)
    await store.close()
    unlink(rig.path + "/collector.db.damaged-5")
    store = try rig.sqlite()
    #expect(try await store.take(packet) == .duplicate)
    #expect(!rig.names.contains("collector.db.damaged-5") && rig.names.contains("collector.db.damaged-5-wal"))
    await store.close()
  }

  @Test(
    "a large database is checked while packets are taken: a damaged one is set aside and brought over, a sound one stays",
    arguments: [true, false])
  func checkedLater(isDamaged: Bool) async throws {
    let rig = StoreRig()
    let packets = try (0..<200).map { try StoreRig.packet(Array($0 * 20..<$0 * 20 + 20)) }
    var store = try rig.sqlite()
    for packet in packets { _ = try await store.take(packet) }
    await store.close()
    if isDamaged { try rig.ruinLeaf() }
    try "running\n".write(toFile: rig.path + "/collector.run", atomically: true, encoding: .utf8)
    store = try rig.sqlite { $0.checkedAtOnceBytesMax = 0 }
    await store.waitForCheck()
    #expect(rig.names.contains { $0.contains("damaged-") } == isDamaged)
    #expect(rig.logged.contains { $0.contains("database is damaged") } == isDamaged)
    try await Self.maintain(store)
    for packet in packets { #expect(try await store.take(packet) == .duplicate) }
    let found = try await store.numbers().count
    #expect(isDamaged ? (3000..<4000).contains(found) : found == 4000, "\(found)")
    #expect(rig.logged.contains { $0.contains("not all reports") } == isDamaged)
    #expect(store.failure == nil)
    await store.close()
  }

  @Test("its files are the owner's only")
  func modes() async throws {
    let rig = StoreRig()
    let store = try rig.sqlite()
    _ = try await store.take(StoreRig.packet([1]))
    for name in ["collector.db", "collector.db-wal"] {
      var facts = stat()
      #expect(stat(rig.path + "/" + name, &facts) == 0 && facts.st_mode & 0o777 == 0o600, "\(name)")
    }
    await store.close()
  }
}

extension StoreRig {
  /// Writes something else over the database, which then was not closed in order.
  func ruin() throws {
    try String(repeating: "not a database at all\n", count: 2000)
      .write(toFile: path + "/collector.db", atomically: false, encoding: .utf8)
    try "running\n".write(toFile: path + "/collector.run", atomically: true, encoding: .utf8)
  }

  /// Makes a page of reports unreadable.
  func ruinLeaf() throws {
    let file = open(path + "/collector.db", O_RDWR | O_CLOEXEC)
    defer { close(file) }
    var kind: UInt8 = 0
    let leaves = (20..<100).filter { pread(file, &kind, 1, off_t($0 * PacketSchema.pageBytes)) == 1 && kind == 13 }
    let noise = [UInt8](repeating: 0xA5, count: 4000)
    pwrite(
      file, noise, noise.count, off_t(try #require(leaves.dropFirst(leaves.count / 2).first) * PacketSchema.pageBytes))
  }

  var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [] }
}
