import Foundation
import PrismBase
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

@Suite("The store")
struct BasicTests {
  let rig = Rig()

  @Test("gives back what it took, byte for byte, once")
  func takesAndGives() async throws {
    let store = try await rig.open()
    guard case .committed(let outcomes) = await store.append([rig.batch(1...20)]) else {
      Issue.record("not committed")
      return
    }
    let packet = try #require(try await store.claim(rig.claim()))
    #expect(packet.numbers == Array(1...20))
    let first = try #require(packet.rows.first)
    let id = outcomes[0].ids[0].reportID(epoch: outcomes[0].epoch)
    #expect(
      String(decoding: first, as: UTF8.self)
        == #"{"MONITOR_TYPE":"shop-order","REPORT_ID":"\#(id)","CREATE_TIME":1700000000000,"IS_BIZ":true,"n":1,"APP_NAME":"pos"}"#
    )
    #expect(try await store.claim(rig.claim()) == nil)
  }

  @Test("shows in its views, to the sqlite3 shell, the very metas that leave")
  func views() async throws {
    let store = try await rig.open()
    let context = CommonContext(members: Array(#""APP_NAME":"pos""#.utf8))
    for number in 1...12 { _ = await store.append([rig.batch([number], context: context)]) }
    _ = await store.append([rig.batch([13], of: .appCrash, in: .prism, priority: .crash, payload: Array("stack".utf8))])
    let packet = try #require(try await store.claim(rig.claim()))
    let shown = try sqlite3("select meta from v_meta where namespace = 'shop' order by id")
    let leaving = try packet.rows.map { try JSONValue(parsing: $0).sorted }
    #expect(try shown.split(separator: "\n").map { try JSONValue(parsing: Array($0.utf8)).sorted } == leaving)
    #expect(try sqlite3("select count(*) || ' ' || sum(is_used) from v_meta") == "13 12")
    #expect(
      try sqlite3("select monitor_type || ' ' || is_biz || ' ' || cast(payload as text) from v_payload")
        == "appCrash 0 stack")
  }

  private func sqlite3(_ sql: String) throws -> String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/sqlite3")
    process.arguments = [rig.path, sql]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let bytes = try output.fileHandleForReading.readToEnd() ?? Data()
    process.waitUntilExit()
    return String(decoding: bytes, as: UTF8.self).trimmingCharacters(in: .newlines)
  }

  @Test("claims crashes first, then realtime types, then the rest, oldest first in each")
  func order() async throws {
    let store = try await rig.open()
    _ = await store.append([rig.batch(1...2), rig.batch(3...4, of: rig.batch([]).types[0].type, priority: .realtime)])
    _ = await store.append([rig.batch(5...6, of: .appCrash, priority: .crash)])
    #expect(try await store.claim(rig.claim())?.numbers == [5, 6, 3, 4, 1, 2])
  }

  @Test("closes a packet at the count, the bytes and the frame's limit, but a single row always goes")
  func caps() async throws {
    let store = try await rig.open()
    _ = await store.append([rig.batch(1...10)])
    #expect(try await store.claim(rig.claim(items: 3))?.numbers == [1, 2, 3])
    #expect(try await store.claim(rig.claim(bytes: 400))?.numbers == [4, 5])
    #expect(try await store.claim(rig.claim(bytes: 1))?.numbers == [6])
    #expect(try await store.claim(rig.claim(metaBytes: 300))?.numbers == [7, 8])
    #expect(try await store.claim(rig.claim())?.numbers == [9, 10])
  }

  @Test("chooses by patterns among the types that are stored")
  func patterns() async throws {
    let store = try await rig.open()
    _ = await store.append([rig.batch(1...3, of: Rig.click), rig.batch(4...6)])
    let others = TypeSet([(Rig.click, false), (.any, true)])
    #expect(try await store.claim(rig.claim(types: .only(others)))?.numbers == [4, 5, 6])
    #expect(try await store.claim(rig.claim(types: .except(others)))?.numbers == [1, 2, 3])
  }

  @Test("leaves types that may not go where they are, and finds them when they may")
  func filters() async throws {
    let store = try await rig.open()
    _ = await store.append([rig.batch(1...3, of: Rig.click), rig.batch(4...6), rig.batch([7], of: Rig.click)])
    #expect(try await store.claim(rig.claim(types: .except([Rig.click])))?.numbers == [4, 5, 6])
    #expect(try await store.claim(rig.claim(types: .except([Rig.click]))) == nil)
    #expect(try await store.claim(rig.claim(types: .only([Rig.order]))) == nil)
    #expect(try await store.claim(rig.claim())?.numbers == [1, 2, 3, 7])
  }

  @Test("answers an id that it knows as a duplicate, until 24 h after the delivery")
  func duplicates() async throws {
    let store = try await rig.open()
    _ = await store.append([rig.batch(1...2, ids: ["a", "a"])])
    #expect(try await store.ledger().stored == 1)
    let packet = try #require(try await store.claim(rig.claim()))
    try await store.settle(.delivered(packet.id, receipt: rig.receipt))
    _ = await store.append([rig.batch([3], ids: ["a"])])
    #expect(try await store.ledger().stored == 1)
    rig.time.move(days: 1, seconds: 1)
    _ = try await store.maintain()
    _ = await store.append([rig.batch([4], ids: ["a"])])
    #expect(try await store.ledger().stored == 2)
  }

  @Test("keeps the same id free for every namespace")
  func idsOfNamespaces() async throws {
    let store = try await rig.open()
    _ = await store.append([rig.batch([1], ids: ["a"]), rig.batch([2], in: .prism, ids: ["a"])])
    #expect(try await store.ledger().stored == 1)
    #expect(try await store.ledger(.prism).stored == 1)
  }

  @Test(
    "takes an id from every user once, also if others send it, until each was delivered, given up or dropped",
    arguments: [1, 20])
  func idsOfUsers(rows: Int) async throws {
    let store = try await rig.open()
    let contexts = (CommonContext(members: Array(#""A":"1""#.utf8)), CommonContext(members: Array(#""A":"2""#.utf8)))
    // Past a few rows a session's context is a row of its own, and its reports are its user's by that.
    let ids = (0..<rows).map { "id-\($0)" }
    func send(_ userID: UInt32, _ context: CommonContext) async throws -> Int {
      let before = try await store.ledger().stored
      _ = await store.append([rig.batch(1...rows, payload: [1], ids: ids, context: context, from: userID)])
      return try await store.ledger().stored - before
    }
    #expect(try await send(1000, contexts.0) == rows)
    #expect(try await send(0, contexts.1) == rows)
    #expect(try await send(1000, contexts.0) == 0)
    #expect(try await send(0, contexts.1) == 0)
    #expect(try await store.trace("id-0").compactMap(\.userID).sorted() == [0, 0, 1000, 1000])
    // One user's are delivered and the other's die: neither frees what the other holds.
    for kind in RowKind.reports {
      let first = try #require(try await store.claim(rig.claim(Rig.shop, kind, items: rows)))
      try await store.settle(.delivered(first.id, receipt: rig.receipt))
      let second = try #require(try await store.claim(rig.claim(Rig.shop, kind, items: rows)))
      let cause = Disposition.DeadCause(status: 422, message: "no", unixMilliseconds: 5, attempts: 2)
      try await store.settle(.dead(second.id, cause: cause))
    }
    #expect(try await store.drop(.all(nil)) == 2 * rows)
    #expect(try await send(1000, contexts.0) == 0, "delivered within 24 h")
    #expect(try await send(0, contexts.1) == rows, "given up")
  }

  @Test("keeps packets in flight over a restart: same id, same rows, same plaintext, same order")
  func restart() async throws {
    var packets: [ClaimedPacket] = []
    do {
      let store = try await rig.open()
      _ = await store.append([rig.batch(1...10, payload: [1, 2, 3])])
      packets.append(try #require(try await store.claim(rig.claim(items: 4))))
      packets.append(try #require(try await store.claim(rig.claim(items: 4))))
      await store.close()
    }
    let store = try await rig.open()
    #expect(try await store.inFlight(Rig.shop, .meta).map(\.id) == packets.map(\.id))
    for packet in packets { #expect(try await store.read(packet.id)?.metas == packet.metas) }
    #expect(try await store.claim(rig.claim())?.numbers == [9, 10])
    #expect(try await store.claim(rig.claim(Rig.shop, .payload))?.payloads.count == 10)
  }

  @Test("settles: delivered rows are gone, halves are in the place of the whole, released rows wait in their place")
  func settles() async throws {
    let store = try await rig.open()
    _ = await store.append([rig.batch(1...10)])
    let first = try #require(try await store.claim(rig.claim(items: 5)))
    let second = try #require(try await store.claim(rig.claim(items: 3)))
    let halves = (rig.packetID(), rig.packetID())
    try await store.settle(.split(first.id, first: halves.0, second: halves.1))
    #expect(try await store.inFlight(Rig.shop, .meta).map(\.id) == [halves.0, halves.1, second.id])
    #expect(try await store.read(halves.0)?.numbers == [1, 2, 3])
    #expect(try await store.read(halves.1)?.numbers == [4, 5])
    try await store.settle(.delivered(halves.0, receipt: rig.receipt))
    #expect(try await store.lastAccepted(Rig.shop, .meta) == halves.0)
    let cause = Disposition.DeadCause(status: 422, message: "no", unixMilliseconds: 0, attempts: 2)
    try await store.settle(.dead(halves.1, cause: cause))
    try await store.settle(.released(second.id))
    #expect(try await store.claim(rig.claim())?.numbers == [6, 7, 8, 9, 10])
    let ledger = try await store.ledger()
    #expect(ledger.isBalanced)
    #expect(ledger[.delivered] == 3 && ledger[.dead] == 2 && ledger[.claimed] == 5 && ledger.stored == 10)
  }

  @Test("a row that is set back waits, and claims pass it, until it is tried again, or a start")
  func setBack() async throws {
    func setBack(_ store: ReportStore) async throws {
      let packet = try #require(try await store.claim(rig.claim(items: 1)))
      #expect(packet.numbers == [1])
      try await store.settle(.setBack(packet.id))
      let status = try #require(try await store.status()[Rig.shop]?[.meta])
      #expect(status.setBack == 1 && status.ledger.isBalanced)
    }
    do {
      let store = try await rig.open()
      _ = await store.append([rig.batch(1...3)])
      try await setBack(store)
      let others = try #require(try await store.claim(rig.claim(items: 1)))
      #expect(others.numbers == [2])
      try await store.settle(.released(others.id))
      #expect(try await store.claim(rig.claim())?.numbers == [2, 3], "also from the begin of the rows")
      #expect(try await store.claim(rig.claim()) == nil)
      await store.endSetBacks(of: Rig.shop)
      try await setBack(store)
      await store.close()
    }
    let store = try await rig.open()
    #expect(try await store.claim(rig.claim())?.numbers == [1])
    await store.close()
  }

  @Test("tells the age of the oldest row, in flight or not")
  func oldest() async throws {
    let store = try await rig.open()
    func oldest() async throws -> Duration? { try await store.status()[Rig.shop]?[.meta]?.oldestAge }
    _ = await store.append([rig.batch(1...2)])
    let packet = try #require(try await store.claim(rig.claim()))
    rig.time.move(seconds: 600)
    #expect(try await oldest() == .seconds(600), "all are claimed")
    _ = await store.append([rig.batch(3...3)])
    #expect(try await oldest() == .seconds(600))
    try await store.settle(.delivered(packet.id, receipt: rig.receipt))
    #expect(try await oldest() == .zero)
    for step in [Int64(50), -50] {
      rig.time.stepWallClock(milliseconds: step * 365 * 86_400_000)
      #expect(try #require(await oldest()) <= .seconds(600), "no clock makes a row older than the one before it")
    }
    _ = try #require(try await store.claim(rig.claim()))
    #expect(try await oldest() == .zero)
    #expect(try await store.status()[Rig.shop]?[.payload]?.oldestAge == nil)
  }

  @Test("drops every row that is too old, in any place, and never a row of a packet in flight")
  func expiry() async throws {
    let store = try await rig.open()
    try await store.apply([:])
    let now = rig.time.unixMilliseconds
    _ = await store.append([rig.batch(1...3)])
    let packet = try #require(try await store.claim(rig.claim(items: 1)))
    _ = await store.append([rig.batch([4], createdTime: now - 14 * 86_400_000)])
    let policy = RetentionPolicy(expirationDays: 15, isUpdateClear: true, appVersion: nil, maxBodyBytes: 1 << 20)
    try await store.apply([Rig.shop: policy])
    rig.time.move(days: 2)
    _ = try await store.maintain()
    #expect(try await store.ledger()[.expired] == 0)
    rig.time.move(days: 14)
    _ = try await store.maintain()
    #expect(try await store.ledger()[.expired] == 3)
    #expect(try await store.read(packet.id)?.numbers == [1])
    #expect(try await store.ledger().isBalanced)
  }

  @Test("holds no more than the quota: the oldest make room, crashes last, or the report is refused")
  func quota() async throws {
    let store = try await rig.open()
    let evicting = StoreQuota(bytesMax: 200 * 1000, evictsOldest: true)
    _ = await store.append([rig.batch([0], of: .appCrash, priority: .crash, quota: evicting)])
    for start in stride(from: 1, to: 2000, by: 100) {
      _ = await store.append([rig.batch(start..<(start + 100), quota: evicting)])
    }
    let ledger = try await store.ledger()
    #expect(ledger.isBalanced)
    #expect(ledger[.evicted] > 900 && ledger[.waiting] <= 1000)
    let packet = try #require(try await store.claim(rig.claim()))
    #expect(packet.numbers.first == 0 && packet.numbers.last == 2000)
    let refusing = StoreQuota(bytesMax: 200 * 1000, evictsOldest: false)
    guard case .committed(let outcomes) = await store.append([rig.batch(1...1000, quota: refusing)]) else {
      Issue.record("not committed")
      return
    }
    #expect(outcomes[0].exceptions.count >= packet.numbers.count)
  }

  @Test("clears what another version of the app stored")
  func update() async throws {
    let store = try await rig.open()
    func policy(_ version: String) -> RetentionPolicy {
      RetentionPolicy(expirationDays: 15, isUpdateClear: true, appVersion: version, maxBodyBytes: 1 << 20)
    }
    _ = await store.append([rig.batch(1...3, payload: [1])])
    try await store.apply([Rig.shop: policy("1")])
    #expect(try await store.ledger()[.waiting] == 3)
    try await store.apply([Rig.shop: policy("2")])
    #expect(try await store.ledger()[.cleared] == 3)
    #expect(try await store.ledger(Rig.shop, .payload)[.cleared] == 3)
    _ = await store.append([rig.batch([4])])
    try await store.apply([Rig.shop: policy("2")])
    #expect(try await store.ledger()[.waiting] == 1)
  }

  @Test(
    "never sends a row that is not what was stored: it is counted corrupt, the others go",
    arguments: ["body", "size", "created_time"])
  func damaged(column: String) async throws {
    do {
      let store = try await rig.open()
      _ = await store.append([rig.batch(1...3)])
      await store.close()
    }
    let value = column == "body" ? "replace(body, '2', '9')" : "\(column) + 1"
    _ = try sqlite3("update m1 set \(column) = \(value) where id & 65535 = 2")
    let store = try await rig.open()
    #expect(try await store.claim(rig.claim())?.numbers == [1, 3])
    let ledger = try await store.ledger()
    #expect(ledger[.corrupt] == 1 && ledger.isBalanced)
  }

  @Test("is taken by one process only")
  func lock() async throws {
    let store = try await rig.open()
    await #expect(throws: StoreError.locked(folder: rig.folder)) {
      try await ReportStore.open(StoreOptions(folder: rig.folder))
    }
    await store.close()
  }

  @Test("lets go of its folder though a child that is being started has a copy of all that is open")
  func copiedLock() throws {
    var copy: Int32 = -1
    defer { close(copy) }
    do {
      let lock = try StateLock(folder: rig.folder)
      let held = (0..<1024).first { descriptor in
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)"))
          == rig.folder + "/prism.lock"
      }
      copy = dup(Int32(try #require(held)))
      withExtendedLifetime(lock) {}
    }
    #expect(throws: Never.self) { try StateLock(folder: rig.folder) }
  }

  @Test("leaves a newer version's database as it is")
  func newerVersion() async throws {
    do { await (try await rig.open()).close() }
    _ = try sqlite3("pragma user_version = 99; update facts set value = '99' where name = 'version'")
    await #expect { try await rig.open() } throws: {
      if case .newerVersion(_, found: 99, _) = $0 as? StoreError { true } else { false }
    }
  }

  @Test("refuses reports on a full disk with disk_full, delivers on, and takes them again when there is space")
  func fullDisk() async throws {
    let store = try await rig.open { $0.pagesMax = 60 }
    var refusal: Refusal?
    for start in 0..<200 where refusal == nil {
      if case .failed(let reason) = await store.append([rig.batch((start * 20)..<(start * 20 + 20), payload: [1, 2])]) {
        refusal = reason
      }
    }
    #expect(refusal?.code == .diskFull)
    #expect(try await store.ledger().isBalanced)
    while let packet = try await store.claim(rig.claim()) {
      try await store.settle(.delivered(packet.id, receipt: rig.receipt))
    }
    rig.time.move(seconds: 2)
    guard case .committed = await store.append([rig.batch([1])]) else {
      Issue.record("not taken again")
      return
    }
  }

  @Test("keeps 1,000 namespaces apart, and shows them all")
  func manyNamespaces() async throws {
    let store = try await rig.open()
    let names = (0..<1000).compactMap { NamespaceName("n\($0)") }
    _ = await store.append(names.enumerated().map { rig.batch([$0.offset], in: $0.element) })
    #expect(try await store.claim(rig.claim(names[7]))?.numbers == [7])
    #expect(try sqlite3("select count(*) from v_meta") == "1000")
  }

  @Test("sets a file aside that is no database of its own, and begins a new one")
  func corruptFile() async throws {
    try Data(repeating: 0x41, count: 8192).write(to: URL(fileURLWithPath: rig.path))
    let store = try await rig.open()
    guard case .committed = await store.append([rig.batch([1])]) else {
      Issue.record("not taken")
      return
    }
    let aside = try FileManager.default.contentsOfDirectory(atPath: rig.folder).filter { $0.contains("foreign-") }
    #expect(aside.count == 1)
    for name in aside { try FileManager.default.removeItem(atPath: rig.folder + "/" + name) }
  }

  @Test("a state folder that is not there is named, with what to do")
  func noFolder() async {
    let problem = "there is no such folder; make it, for prismd's user"
    await #expect(throws: StoreError.folder(path: "/nonexistent/prism", problem: problem)) {
      try await ReportStore.open(StoreOptions(folder: "/nonexistent/prism"))
    }
  }
}
