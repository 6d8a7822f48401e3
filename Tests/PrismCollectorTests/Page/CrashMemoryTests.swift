import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// The memory that crashes take is bounded in bytes (docs/page.md, "Groups of crashes").
@Suite struct CrashMemoryTests {
  private static func letters(_ number: Int) -> String {
    String(decoding: String(number).utf8.map { $0 + 49 }, as: UTF8.self)
  }

  /// A stack of 64 frames of 290 bytes, of functions of its own.
  private static func stack(_ number: Int) -> String {
    (0..<64).map { frame in
      let name = letters(number * 64 + frame) + String(repeating: "q", count: 120)
      return "#\(frame)  0x0000560ab2c011cd in \(name) (n=3) at \(name).c:43"
    }.joined(separator: "\n")
  }

  @Test("long stacks of one device take as much as their groups, once for all readers, and pages show all frames")
  func stacks() async throws {
    let rig = try PageRig()
    let count = 40
    for number in 0..<count {
      _ = try await rig.collector.store.take(
        StoreRig.packet(
          [number], namespace: "lab", type: "appCrash", payload: Array(Self.stack(number).utf8),
          members: { _ in #""reason":"x""# }))
    }
    let found = try await rig.json("/crashes", [("since", "0"), ("limit", "1000")])
    #expect(found["total"]?.int == count && found["isWhole"] == true && found["leftOut"] == 0)
    let index = rig.collector.access.page.crashes
    let bytes = await index.bytes
    #expect(bytes <= count * CrashIndex.bytesMax / 5000, "\(bytes / count) bytes a group")
    for scope in [Scope(["lab"]), Scope(["l*"]), Scope(["shop"])] {
      let groups = try await CrashWatch(rig.collector).groups(of: scope)
      #expect(groups.all.count == (scope.has("lab") ? count : 0) && groups.newest != nil)
    }
    #expect(await index.bytes == bytes)
    let fingerprint = found["groups"]?.array?.first?["fingerprint"]?.string ?? ""
    let page = try await rig.json("/crashes/\(fingerprint)")
    #expect(page["frames"]?.array?.count == 64 && page["stack"]?.array?.count == 64 && page["key"]?.array?.count == 6)
    #expect(page["devices"]?.array == [["count": 1, "device": "d"]])
  }

  @Test("groups with many devices, versions and hours give places up by their bytes")
  func tables() async throws {
    let rig = StoreRig()
    let (store, index) = (MemoryPacketStore(), CrashIndex(bytesMax: 60_000))
    for round in 0..<60 {
      for device in 0..<20 {
        _ = try await store.take(
          StoreRig.packet(
            [round * 20 + device], device: "device-of-a-long-name-\(device)", type: "appCrash",
            members: { _ in
              let words = #""reason":"\#(Self.letters(round % 30)) \#(String(repeating: "w", count: 900))""#
              return words + #","APP_NAME":"till","APP_VERSION":"\#(round).\#(String(repeating: "7", count: 900))""#
            }))
      }
      #expect(try await index.refresh(store, time: rig.time))
      #expect(await index.bytes <= 60_000)
    }
    let (groups, leftOut) = (await index.groups(), await index.leftOut().count)
    #expect(groups.count < 30 && groups.values.reduce(0) { $0 + $1.count } + leftOut == 1200)
    #expect(
      groups.values.allSatisfy { $0.reason.utf8.count <= 200 && $0.versions.keys.allSatisfy { $0.utf8.count < 140 } })
  }

  @Test("the page of a group whose crashes are erased has no frames")
  func erased() async throws {
    let rig = try PageRig()
    _ = try await rig.collector.store.take(
      StoreRig.packet([1], type: "appCrash", payload: Array("#0 pay ()\n#1 main ()".utf8)))
    let found = try await rig.json("/crashes", [("since", "0")])
    var filter = ReportFilter(scope: .everything)
    filter.device = "d"
    while try await rig.collector.store.eraseNext(filter, after: 0) != nil {}
    let page = try await rig.json("/crashes/\(found["groups"]?.array?.first?["fingerprint"]?.string ?? "")")
    #expect(page["group"]?["total"] == 1 && page["frames"] == [])
  }

  @Test("a device that makes many groups alone gives their places up, and not those of others in its namespace")
  func device() async throws {
    let rig = StoreRig()
    let (store, index) = (MemoryPacketStore(), CrashIndex(groupsMax: 100))
    let take = { (numbers: Range<Int>, device: String) in
      _ = try await store.take(
        StoreRig.packet(
          Array(numbers), device: device, namespace: "shop", type: "appCrash",
          members: { #""reason":"\#(device)\#(Self.letters($0))""# }))
      #expect(try await index.refresh(store, time: rig.time))
    }
    for device in 0..<20 { try await take(device..<device + 1, Self.letters(device) + "-d") }
    for first in stride(from: 100, to: 700, by: 50) { try await take(first..<first + 50, "evil") }
    let groups = await index.groups().values
    #expect(groups.count { !$0.reason.hasPrefix("evil") } == 20 && groups.count <= 100)
    #expect(await index.leftOut().byNamespace == ["shop": 620 - groups.count])
  }

  @Test("a crash counts as often as its row says, in counts, devices, times and conditions")
  func weight() async throws {
    let rig = try PageRig()
    let crash = { (number: Int, members: String) in
      _ = try await rig.collector.store.take(
        StoreRig.packet(
          [number], type: "appCrash",
          members: { _ in #""reason":"leak","APP_NAME":"till","APP_VERSION":"1.0"\#(members)"# }))
    }
    let group = {
      try #require(try await rig.json("/crashes", [("since", "0"), ("device", "d")])["groups"]?.array?.first)
    }
    try await crash(1, "")
    let fingerprint = try await group()["fingerprint"]?.string ?? ""
    let answer = await rig.collector.answerReader(
      PageRig.request(
        "/api/v1/crashes/\(fingerprint)/state", method: .post, headers: [("content-type", "application/json")],
        body: #"{"state":"ignored","count":50}"#), isOwner: true)
    #expect(answer.status == 200)
    try await crash(2, #","REPEAT_COUNT":49"#)
    #expect(try await group()["state"] == "ignored")
    try await crash(3, #","MONITOR_SAMPLE":0.1"#)
    let found = try await group()
    #expect(found["total"] == 60 && found["count"] == 60 && found["deviceCount"] == 60 && found["state"] == "open")
    let charts = [("type", "appCrash"), ("since", "0")]
    #expect(try await rig.json("/histogram", charts)["total"] == 51, "a row's repetitions")
    #expect(try await rig.json("/histogram", [("since", "0")])["total"] == 3, "rows")
    #expect(found["trend"]?.array?.compactMap(\.int).reduce(0, +) == 60)
    for odd in [#","REPEAT_COUNT":-7"#, #","REPEAT_COUNT":"x""#, #","MONITOR_SAMPLE":0"#, #","MONITOR_SAMPLE":7"#] {
      try await crash(odd.utf8.count + 100, odd)
    }
    try await crash(9, #","REPEAT_COUNT":9007199254740993,"MONITOR_SAMPLE":1e-300"#)
    let total = try #require(try await group()["total"]?.int)
    #expect((1_000_061...1_000_064).contains(total))
  }
}
