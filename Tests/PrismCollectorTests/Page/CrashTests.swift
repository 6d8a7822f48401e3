import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

@Suite("Crashes and their groups")
struct CrashTests {
  @Test(
    "what differs between runs is no part of a crash's words",
    arguments: [
      ("thread 140123456 died", "thread 77777 died"), ("index 5 of 3", "index 12 of 3"), ("at 0x7f10", "at 0xdeadbeef"),
      ("no order 0b1f8c2e-6a1d-4c2b-9a55-0123456789ab", "no order 11111111-2222-3333-4444-555566667777"),
      ("open /home/ann/shop/db.1: denied", "open /home/bob/shop/db.22: denied"),
      ("open /tmp/tmpab3xk9q/cart: denied", "open /tmp/tmpqw8zz17/cart: denied"),
      ("/var/lib/shop/a1b2c3d4/cart", "/var/lib/shop/99f0aa17/cart"), ("digest 9f86d081884c", "digest 60303ae22b99"),
    ])
  func plain(one: String, other: String) { #expect(CrashText.plain(one) == CrashText.plain(other)) }

  @Test(
    "words that tell two causes apart stay",
    arguments: [
      ("signal 11", "signal 6"), ("open /etc/shop.conf", "open /etc/till.conf"), ("out of paper", "out of ink"),
      ("/usr/lib/libcart.so.1", "/usr/lib/libtill.so.1"), ("/home/ann/a", "/home/ann/b"),
    ])
  func told(one: String, other: String) { #expect(CrashText.plain(one) != CrashText.plain(other)) }

  @Test("addresses become offsets in their files, so that every run of a build gives the same frames")
  func addresses() {
    let crash = { (base: UInt64) in
      let hex = { (offset: UInt64) in String(base + offset, radix: 16) }
      return """
        0x\(hex(0x1f2c))
        0x\(hex(0x2a10))
        0xdead

        \(hex(0))-\(hex(0x3000)) r-xp 00001000 08:01 1234                       /usr/bin/shop till
        \(hex(0x3000))-\(hex(0x4000)) rw-p 00004000 08:01 1234                  /usr/bin/shop till
        """
    }
    let frames = CrashStack.frames(of: crash(0x55d1_a000_0000)).map(\.text)
    #expect(frames == ["shop till+0x2f2c", "shop till+0x3a10", "unknown"])
    #expect(CrashStack.frames(of: crash(0x5612_b000_0000)).map(\.text) == frames)
  }

  @Test("a memory map with numbers beyond all addresses is read")
  func hostileMap() {
    let map = "0-ffffffffffffffff r-xp ffffffffffffffff 08:01 1 /usr/bin/shop"
    #expect(
      CrashStack.frames(of: "0xffffffffffffff00\n0x1\n\n\(map)").map(\.text) == ["shop+0xfffffffffffffeff", "shop+0x0"])
  }

  @Test(
    "frames are read as crash reporters write them, the innermost first",
    arguments: [
      (
        "Traceback:\n  File \"a.py\", line 1, in main\n    f()\n  File \"b.py\", line 2, in f\nKeyError",
        ["f (b.py:2)", "main (a.py:1)"]
      ),
      ("#0  0x7f10 in raise () at raise.c:50\n#1 abort ()", ["raise () at raise.c:50", "abort ()"]),
      ("Error: x\n    at total (cart.js:7:3)\n    at main.js:1", ["total (cart.js:7:3)", "main.js:1"]),
      ("0 0x55d1 total + 12 in shop\n1 main", ["total + 12 in shop", "main"]), ("no stack at all", []), ("", []),
      ("12345 is no frame", []), ("\n\n\n", []), ("0x", []), ("0xzz\n", []),
    ])
  func texts(text: String, frames: [String]) { #expect(CrashStack.frames(of: text).map(\.text) == frames) }

  @Test("the offset of a frame may be a number")
  func numberOfOffset() throws {
    let frames = try [#""0x112d""#, "4397", #""112d""#].map { offset in
      CrashStack.frames(
        meta: try JSONValue(parsing: #"{"frames":[{"module":"tb","buildId":"ab","offset":\#(offset)}]}"#), payload: nil)
    }
    #expect(frames.allSatisfy { $0.map(\.text) == ["tb+0x112d"] && $0.first?.offset == 0x112d }, "\(frames)")
  }

  @Test("a list of frames may hold texts and objects; anything else in it is left out")
  func lists() throws {
    let named = #"{"function":"_ZN4Cart5totalEi","module":"shop","buildId":"ab","offset":"0x1"}"#
    let list = #"["one",{"function":"two","file":"t.swift"},{"address":"0x1"},7,null,{},"",\#(named)"#
    let meta = try JSONValue(parsing: #"{"frames":\#(list),{"module":"a b","offset":"0x1f2c"}]}"#)
    #expect(
      CrashStack.frames(meta: meta, payload: nil).map(\.text) == [
        "one", "two (t.swift)", "0x1", "Cart::total (shop)", "a b+0x1f2c",
      ])
  }

  @Test("bytes of any kind give frames that are bounded", arguments: [UInt64(1), 2, 3])
  func anything(seed: UInt64) {
    var state = seed
    let bytes = (0..<100_000).map { _ -> UInt8 in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return [0x23, 0x30, 0x20, 0x0A, 0x61, 0xFF, 0x78, 0x3A, 0x2B][Int(state >> 33) % 9]
    }
    let frames = CrashStack.frames(meta: [:], payload: bytes)
    #expect(frames.count <= CrashStack.framesMax && frames.allSatisfy { $0.text.utf8.count <= 1000 })
    #expect(CrashFingerprint.parts(frames).allSatisfy { $0.utf8.count <= 1000 })
  }

  @Test("crashes of one cause are one group, with their devices, versions and reports")
  func groups() async throws {
    let rig = try PageRig()
    let crash = { (reason: String, device: String) in
      try StoreRig.packet([Int.random(in: 0...Int.max)], device: device, type: "appCrash", payload: Array(reason.utf8))
    }
    let one = "#0 total ()\n#1 main ()"
    for device in ["a", "b", "a"] { _ = try await rig.collector.store.take(try crash(one, device)) }
    _ = try await rig.collector.store.take(try crash("#0 price ()", "a"))
    _ = try await rig.collector.store.take(StoreRig.packet([1], type: "other"))
    let found = try await rig.json("/crashes", [("since", "0")])
    let groups = try #require(found["groups"]?.array)
    #expect(groups.compactMap { $0["count"]?.int }.sorted() == [1, 3] && found["isWhole"] == true)
    let largest = try #require(groups.first { $0["count"] == 3 })
    #expect(largest["devices"] == 2 && largest["frame"] == "total ()")
    let now = rig.rig.time.unixMilliseconds
    for since in [0, now - 14 * 86_400_000, now - 1] {
      let found = try await rig.json("/crashes", [("since", String(since))])
      let trends = (found["groups"]?.array ?? []).map { ($0["trend"]?.array ?? []).compactMap(\.int) }
      #expect(found["count"] == 4 && trends.map { $0.reduce(0, +) }.sorted() == [1, 3], "\(since)")
      #expect(trends.allSatisfy { $0.last != 0 }, "the newest hour is at the end")
    }
    let before = try await rig.json("/crashes", [("since", "0"), ("until", String(now - 7_200_000))])
    #expect(before["total"] == 0 && before["count"] == 0)
    let ofDevice = try await rig.json("/crashes", [("since", "0"), ("device", "b")])["groups"]?.array?.first
    #expect(ofDevice?["deviceCount"] == 1 && ofDevice?["count"] == 3)
    _ = try await rig.collector.store.take(try crash(one, "c"))
    let group = try await rig.json("/crashes/\(largest["fingerprint"]?.string ?? "")")
    #expect(group["group"]?["total"] == 4 && group["frames"]?.array == ["total ()", "main ()"])
    #expect(group["reports"]?.array?.count == 4 && group["devices"]?.array?.count == 3)
    #expect(await rig.ask("/crashes/0000000000000000").status == 404)
  }

  @Test(
    "a crash with a payload arrives as two rows, in any order, and counts once, with its frames",
    arguments: [true, false])
  func twice(isMetaFirst: Bool) async throws {
    let rig = try PageRig()
    let rows = [
      try StoreRig.packet([7], type: "appCrash"),
      try StoreRig.packet([7], type: "appCrash", payload: Array("#0 total ()".utf8)),
    ]
    for row in isMetaFirst ? rows : rows.reversed() {
      _ = try await rig.collector.store.take(row)
      #expect(try await rig.json("/crashes", [("since", "0")])["total"] == 1)
    }
    let group = try #require(try await rig.json("/crashes", [("since", "0")])["groups"]?.array?.first)
    #expect(group["frame"] == "total ()" && group["count"] == 1 && group["devices"] == 1)
  }

  private static func crash(
    _ numbers: [Int], _ reason: String, device: String = "d", namespace: String = "prism", payload: String? = nil,
    members: String = ""
  ) throws -> OpenedPacket {
    try StoreRig.packet(
      numbers, device: device, namespace: namespace, type: "appCrash", payload: payload.map { Array($0.utf8) },
      members: { #""reason":"\#(reason)\#(Self.letters($0))"\#(members)"# })
  }

  /// Digits are no part of a key.
  private static func letters(_ number: Int) -> String {
    String(decoding: String(number).utf8.map { $0 + 49 }, as: UTF8.self)
  }

  @Test("crashes of two users of a device are two, also if their reports have one id")
  func users() async throws {
    let rig = try PageRig()
    for user in 0...1 {
      _ = try await rig.collector.store.take(
        Self.crash([7], "leak", members: #","SYS_PEER_UID":"\#(user)","frames":["f\#(user) ()"]"#))
    }
    let found = try await rig.json("/crashes", [("since", "0")])
    #expect(found["count"] == 2 && found["total"] == 2)
  }

  @Test("a crash is on the day it happened, also in the first and last time of its group, and in no time without it")
  func happened() async throws {
    let rig = try PageRig()
    let (now, day) = (rig.rig.time.unixMilliseconds, Int64(86_400_000))
    let crash = { (number: Int64, payload: String?) in
      _ = try await rig.collector.store.take(
        StoreRig.packet([Int(number)], type: "appCrash", payload: payload.map { Array($0.utf8) }))
    }
    let group = { (query: [(name: String, value: String)]) in
      try await rig.json("/crashes", [("since", String(now - 14 * day))] + query)["groups"]?.array?.first
    }
    try await crash(now - 3 * day, nil)
    let found = try #require(try await group([]))
    #expect(found["firstTime"] == .int(now - 3 * day) && found["lastTime"] == .int(now - 3 * day))
    #expect(found["trend"]?.array?.last == 0 && found["count"] == 1)
    #expect(try await group([("until", String(now - 2 * day))])?["count"] == 1)
    #expect(try await rig.json("/crashes", [("since", String(now - 2 * day))])["total"] == 0)
    try await crash(now - day, nil)
    #expect(try await group([])?["lastTime"] == .int(now - day))
    // Its payload leads it to another group.
    try await crash(now - day, "#0 total ()")
    let groups = try await rig.json("/crashes", [("since", "0")])["groups"]?.array ?? []
    #expect(groups.compactMap { $0["lastTime"] } == [.int(now - day), .int(now - 3 * day)])
    #expect(groups.allSatisfy { $0["devices"] == 1 && $0["count"] == 1 })
  }

  @Test("a payload that comes long after its meta is one crash with it")
  func far() async throws {
    let rig = try PageRig()
    let store = rig.collector.store
    _ = try await store.take(Self.crash([1], "far", members: #","frames":["far ()"]"#))
    for first in stride(from: 10, to: 9010, by: 1000) {
      _ = try await store.take(
        Self.crash(Array(first..<first + 1000), "same", device: "e", members: #","frames":["e ()"]"#))
    }
    _ = try await store.take(Self.crash([1], "far", payload: "core", members: #","frames":["far ()"]"#))
    let groups = try await rig.json("/crashes", [("since", "0")])["groups"]?.array ?? []
    #expect(groups.compactMap { $0["total"]?.int }.sorted() == [1, 9000])
  }

  @Test(
    "a namespace with many groups takes no place of another one's; its groups that crashed longest ago give theirs up")
  func places() async throws {
    let rig = StoreRig()
    let (store, index) = (MemoryPacketStore(), CrashIndex(groupsMax: 20))
    let take = { (numbers: ClosedRange<Int>, namespace: String, device: String) in
      _ = try await store.take(Self.crash(Array(numbers), namespace, device: device, namespace: namespace))
      #expect(try await index.refresh(store, time: rig.time))
    }
    try await take(1...3, "shop", "d")
    try await take(10...99, "lab", "e")
    try await take(4...5, "shop", "d")
    try await take(100...109, "lab", "e")
    let groups = await index.groups().values.sorted { $0.firstReport < $1.firstReport }
    #expect(groups.count <= 20 && groups.prefix(3).allSatisfy { $0.namespaces == ["shop"] })
    #expect(groups.count { $0.namespaces == ["shop"] } == 5 && groups.last?.reason == "lab\(Self.letters(109))")
    #expect(await index.leftOut().count == 105 - groups.count)
  }

  @Test("groups of several namespaces give up places, too, once they take all")
  func sharedPlaces() async throws {
    let rig = StoreRig()
    let (store, index) = (MemoryPacketStore(), CrashIndex(groupsMax: 20))
    for number in 0..<60 {
      for namespace in ["shop", ["lab", "till", "kiosk"][number % 3]] {
        _ = try await store.take(Self.crash([number], "x", device: namespace, namespace: namespace))
      }
      #expect(try await index.refresh(store, time: rig.time))
    }
    #expect(await index.groups().count <= 20)
    #expect(await index.groups().values.contains { $0.reason == "x\(Self.letters(59))" && $0.count == 2 })
  }
}
