import PrismConfig
import PrismHTTP
import PrismProtocol
import PrismSQL
import PrismSQLite
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("Receivers get a notice of each event, once", .serialized)
struct NoticeWatchTests {
  @Test("a new group of crashes has one notice, also over starts; groups from before have no notice")
  func newGroups() async throws {
    let rig = try NoticeRig([NoticeRig.receiver(), NoticeRig.receiver(name: "other", on: [.regressedGroup])])
    try await rig.take(1, function: "before")
    try await rig.look()
    #expect(try await rig.notices().isEmpty)
    try await rig.take(2, function: "pay")
    try await rig.take(3, function: "before")
    for _ in 0..<3 { try await rig.look() }
    let notices = try await rig.notices()
    #expect(notices.count == 1 && notices.first?.event == .newGroup && notices.first?.receiver == "ops")
    #expect(notices.first?.title == "A new crash" && notices.first?.items.first?.text == "SIGSEGV in pay (till.c:1)")
    try await rig.startAgain()
    try await rig.look()
    #expect(try await rig.notices() == notices)
    for number in 4..<40 { try await rig.take(number, function: "f\(number)") }
    try await rig.startAgain()
    try await rig.look()
    let many = try #require(try await rig.notices().first { $0.count > 1 })
    #expect(try await rig.notices().count == 2 && many.count == 36 && many.items.count == Notice.itemsMax)
    #expect(many.title == "36 new crashes")
  }

  @Test("a flood of notices to one receiver takes no other's, and what waits outlives what is done")
  func flood() async throws {
    let rig = try NoticeRig([NoticeRig.receiver()])
    let store = rig.collector.access.page.notices
    func notice(_ number: Int, to receiver: String, _ state: Notice.State) -> Notice {
      var notice = Notice(
        .newGroup, to: receiver, key: "\(number)", time: Int64(number), title: "A new crash", items: [])
      notice.state = state
      return notice
    }
    let own = notice(1, to: "ops", .waiting)
    let waiting = notice(2, to: "loud", .waiting)
    _ = try await store.move("a", from: nil, to: 1, adding: [own, notice(1, to: "other", .delivered), waiting])
    let flood = (3..<NoticeStore.countMax + 40).map { notice($0, to: "loud", .delivered) }
    _ = try await store.move("b", from: nil, to: 1, adding: flood)
    let kept = Set(try await store.page(before: .max, id: "", state: nil, limit: 20_000).map(\.id))
    #expect(kept.count == NoticeStore.countMax && kept.isSuperset(of: [own.id, waiting.id]))
    #expect(!kept.contains(flood[0].id) && kept.contains(flood[flood.count - 1].id))
  }

  @Test("a mark goes back where the ids of reports do, as in a database that was replaced") func marksGoBack()
    async throws
  {
    let rig = try NoticeRig([NoticeRig.receiver()])
    try await rig.take(1, function: "before")
    try await rig.look()
    let (store, name) = (rig.collector.access.page.notices, "newGroup/ops")
    let mark = try #require(try await store.mark(name))
    #expect(try await store.move(name, from: mark, to: 1 << 40, adding: []))
    try await rig.look()
    #expect(try await store.mark(name) == mark)
    try await rig.take(2, function: "pay")
    try await rig.look()
    #expect(try await rig.notices().count == 1)
  }

  @Test("a group that debug files name is no new one", .enabled(if: Symbolizer.isInstalled))
  func named() async throws {
    let (rig, program) = (try NoticeRig([NoticeRig.receiver()]), try PlantedProgram(.c))
    try await rig.look()
    try await rig.take(1, members: try program.crash(1, bug: 1))
    try await rig.look()
    #expect(try await rig.notices().count == 1)
    _ = try rig.collector.options.symbolFolder.add(program.debugFile(1))
    try await rig.look()
    #expect(await rig.collector.access.page.crashes.groups().values.first?.frame?.hasPrefix("price") == true)
    #expect(try await rig.notices().count == 1)
  }

  @Test("a resolved group that is back has one notice, stored with the mark that it regressed")
  func regressed() async throws {
    let rig = try NoticeRig([NoticeRig.receiver(on: [.regressedGroup]), NoticeRig.receiver(name: "b")])
    try await rig.take(1, function: "pay")
    try await rig.look()
    for round in 1...2 {
      let groups = try await rig.ask(.get, "/crashes", [("since", "0")]).json["groups"]?.array
      let fingerprint = try #require(groups?.first?["fingerprint"]?.string)
      rig.rig.time.advance(by: .seconds(1))
      #expect(try await rig.ask(.post, "/crashes/\(fingerprint)/state", [], #"{"state":"resolved"}"#).status == 200)
      rig.rig.time.advance(by: .seconds(1))
      try await rig.look()
      try await rig.take(1 + round, function: "pay")
      for _ in 0..<2 { try await rig.look() }
      try await rig.startAgain()
      try await rig.look()
      let notices = try await rig.notices()
      #expect(notices.count == 2 * round && notices.allSatisfy { $0.event == .regressedGroup })
      #expect(notices.first?.items.first?.object == fingerprint)
    }
  }

  @Test("a silent device has one notice, and another one after it sent")
  func silent() async throws {
    let rig = try NoticeRig([NoticeRig.receiver(on: [.silentDevice])])
    for device in ["a", "b"] { try await rig.take(1, device: device) }
    try await rig.look()
    rig.rig.time.move(seconds: 23 * 3600)
    try await rig.take(2, device: "b")
    try await rig.look()
    #expect(try await rig.notices().isEmpty)
    rig.rig.time.move(seconds: 2 * 3600)
    for _ in 0..<2 { try await rig.look() }
    try await rig.startAgain()
    try await rig.look()
    #expect(try await rig.notices().map { $0.items.map(\.object) } == [["a"]])
    try await rig.take(3, device: "a")
    rig.rig.time.move(seconds: 25 * 3600)
    try await rig.look()
    let newest = try #require(try await rig.notices().first)
    #expect(
      newest.count == 2 && newest.items.map(\.object) == ["b", "a"] && newest.title.contains("2 devices are silent"))
    // A clock that goes back repeats nothing.
    rig.rig.time.stepWallClock(milliseconds: -40 * 86_400_000)
    try await rig.look()
    #expect(try await rig.notices().count == 2)
  }

  @Test("after an outage of the collector a device is silent once it had the time of the rule to send")
  func outage() async throws {
    let rig = try NoticeRig([NoticeRig.receiver(on: [.silentDevice])])
    for device in ["a", "b"] { try await rig.take(1, device: device) }
    try await rig.look()
    rig.rig.time.move(seconds: 3600)
    try await rig.look()
    // No collector runs for two days.
    rig.rig.time.move(seconds: 48 * 3600)
    try await rig.startAgain()
    try await rig.look()
    #expect(try await rig.notices().isEmpty)
    rig.rig.time.move(seconds: 1800)
    try await rig.take(2, device: "b")
    rig.rig.time.move(seconds: 22 * 3600)
    try await rig.look()
    #expect(try await rig.notices().isEmpty)
    rig.rig.time.move(seconds: 3600)
    for _ in 0..<2 { try await rig.look() }
    #expect(try await rig.notices().map { $0.items.map(\.object) } == [["a"]])
    rig.rig.time.move(seconds: 2 * 3600)
    try await rig.look()
    #expect(try await rig.notices().map { $0.items.map(\.object) } == [["b"], ["a"]])
  }

  @Test("a clock that is ahead for a minute makes no device silent, and keeps no rule from its work")
  func clockAhead() async throws {
    let rig = try NoticeRig([NoticeRig.receiver(on: [.silentDevice])])
    try await rig.take(1, device: "a")
    try await rig.look()
    rig.rig.time.stepWallClock(milliseconds: 400 * 86_400_000)
    for _ in 0..<2 {
      rig.rig.time.move(seconds: 60)
      try await rig.look()
    }
    rig.rig.time.stepWallClock(milliseconds: -400 * 86_400_000)
    rig.rig.time.move(seconds: 60)
    try await rig.look()
    #expect(try await rig.notices().isEmpty)
    rig.rig.time.move(seconds: 24 * 3600)
    try await rig.look()
    #expect(try await rig.notices().map { $0.items.map(\.object) } == [["a"]])
  }

  @Test("a mark that is ahead of the clock is set back")
  func markAhead() async throws {
    let rig = try NoticeRig([NoticeRig.receiver(on: [.silentDevice])])
    try await rig.take(1, device: "a")
    let ahead = rig.rig.time.unixMilliseconds + 400 * 86_400_000
    _ = try await rig.collector.access.page.notices.move("silentDevice/ops", from: nil, to: ahead, adding: [])
    try await rig.look()
    rig.rig.time.move(seconds: 25 * 3600)
    try await rig.look()
    #expect(try await rig.notices().map { $0.items.map(\.object) } == [["a"]])
  }

  @Test("a count has the reports that a row is for")
  func repeats() async throws {
    var receiver = NoticeRig.receiver(on: [.count])
    (receiver.countType, receiver.countOver, receiver.countMinutes) = ("appCrash", 49, 10)
    let rig = try NoticeRig([receiver])
    try await rig.take(1, members: #""reason":"x","REPEAT_COUNT":49"#)
    try await rig.look()
    #expect(try await rig.notices().isEmpty)
    try await rig.take(2, members: #""reason":"x""#)
    try await rig.look()
    #expect(try await rig.notices().first?.count == 50)
  }

  @Test("the first look of a new receiver notes how things are: a count that is over its limit already has no notice")
  func newReceiver() async throws {
    var receiver = NoticeRig.receiver(on: [.count])
    (receiver.countType, receiver.countOver, receiver.countMinutes) = ("sale", 2, 10)
    let rig = try NoticeRig([receiver])
    for number in 1...5 { try await rig.take(number) }
    for _ in 0..<2 { try await rig.look() }
    #expect(try await rig.notices().isEmpty)
    rig.rig.time.advance(by: .seconds(660))
    try await rig.look()
    for number in 6...8 { try await rig.take(number) }
    try await rig.look()
    #expect(try await rig.notices().map(\.count) == [3])
  }

  @Test("a count has a notice when it gets over its limit, and another one after it fell")
  func count() async throws {
    var receiver = NoticeRig.receiver(on: [.count])
    (receiver.countType, receiver.countOver, receiver.countMinutes) = ("sale", 2, 10)
    let rig = try NoticeRig([receiver])
    var number = 0
    for round in 1...2 {
      for _ in 0..<2 {
        number += 1
        try await rig.take(number)
      }
      try await rig.look()
      #expect(try await rig.notices().count == round - 1)
      number += 1
      try await rig.take(number)
      for _ in 0..<2 { try await rig.look() }
      #expect(try await rig.notices().count == round)
      rig.rig.time.advance(by: .seconds(660))
      try await rig.look()
      #expect(try await rig.notices().count == round)
    }
    #expect(try await rig.notices().first?.title == "3 reports of sale in 10 min, over 2")
  }

  @Test(
    "the fleet's tables of 0.2.0 get those of notices, and keep what is in them", arguments: StoreRig.Fleet.allCases)
  func migrated(kind: StoreRig.Fleet) async throws {
    let (rig, kept) = (StoreRig(), "INSERT INTO remote_facts VALUES ('kept', 7);")
    let fleet: FleetDatabase
    if kind == .sqlite {
      fleet = .folder(rig.path)
      try fleet.prepare()
      let connection = try SQLiteConnection(.init(path: rig.path + "/fleet.db"))
      try connection.execute("\(kept) \(StoreRig.fleetOfFirstVersion) PRAGMA user_version = 2")
    } else {
      let server = try await PostgreSQLRig()
      let target = try PostgreSQLTarget(uri: server.server.uri(server.database))
      _ = try PostgreSQLSetup.migrate(target)
      _ = try await server.sql("\(kept) \(PostgreSQLRig.firstVersion)")
      #expect(try PostgreSQLSetup.migrate(target) == PostgreSQLSchema.version)
      fleet = .server(target)
    }
    let store = NoticeStore(fleet)
    #expect(try await store.move("count/ops", from: nil, to: 1, adding: []))
    #expect(try await store.mark("count/ops") == 1)
    let value = try FleetSession(fleet).read { try $0.integer("SELECT value FROM remote_facts WHERE name = 'kept'") }
    #expect(value == 7)
  }

  @Test(
    "time in which no collector ran is known to each replica, and that of a wrong clock is forgotten",
    arguments: StoreRig.Fleet.allCases)
  func outages(kind: StoreRig.Fleet) async throws {
    let rig = StoreRig()
    let fleet = try await rig.fleet(kind)
    try fleet.prepare()
    let (hour, store, other): (Int64, NoticeStore, NoticeStore) = (3_600_000, NoticeStore(fleet), NoticeStore(fleet))
    #expect(try await store.silentSince(hour, now: 100 * hour, uptime: .zero) == 99 * hour)
    // Two hours ran, in which this one did not look.
    #expect(try await store.silentSince(hour, now: 102 * hour, uptime: .seconds(7200)) == 101 * hour)
    // Of eight hours one ran.
    #expect(try await store.silentSince(hour, now: 110 * hour, uptime: .seconds(10_800)) == 102 * hour)
    #expect(try await other.silentSince(2 * hour, now: 110 * hour + 1000, uptime: .zero) == 101 * hour + 1000)
    #expect(try await other.silentSince(hour, now: 1000 * hour, uptime: .seconds(1)) == 102 * hour + 2000)
    #expect(try await store.silentSince(2 * hour, now: 111 * hour, uptime: .seconds(14_400)) == 102 * hour)
    #expect(try await store.silentSince(hour, now: 113 * hour, uptime: .seconds(21_600)) == 112 * hour)
  }

  @Test("two replicas that look at once store one notice", arguments: StoreRig.Fleet.allCases)
  func replicas(kind: StoreRig.Fleet) async throws {
    let rig = StoreRig()
    let fleet = try await rig.fleet(kind)
    try fleet.prepare()
    let stores = (0..<4).map { _ in NoticeStore(fleet) }
    #expect(try await stores[0].move("newGroup/ops", from: nil, to: 7, adding: []))
    for step in 0..<10 {
      let mark = try #require(try await stores[0].mark("newGroup/ops"))
      let won = try await withThrowingTaskGroup(of: Bool.self) { group in
        for (place, store) in stores.enumerated() {
          let notice = Notice(
            .newGroup, to: "ops", key: "\(mark) \(place)", time: Int64(step), title: "x", items: [])
          group.addTask { try await store.move("newGroup/ops", from: mark, to: mark + 1, adding: [notice]) }
        }
        return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(won == 1)
    }
    #expect(try await stores[1].page(before: .max, id: "~", state: nil, limit: 100).count == 10)
    let due = try await stores[2].due("ops", now: 100, limit: 100)
    #expect(due.count == 10)
    for notice in due {
      let claimed = try await withThrowingTaskGroup(of: Bool.self) { group in
        for store in stores { group.addTask { try await store.claim(notice, until: 60_000) } }
        return try await group.reduce(0) { $0 + ($1 ? 1 : 0) }
      }
      #expect(claimed == 1)
    }
    #expect(try await stores[3].due("ops", now: 100, limit: 100).isEmpty)
    let page = try await stores[0].page(before: 9, id: "~", state: .waiting, limit: 4)
    #expect(page.map(\.time) == [8, 7, 6, 5] && page.allSatisfy { $0.attempts == 1 })
  }
}
