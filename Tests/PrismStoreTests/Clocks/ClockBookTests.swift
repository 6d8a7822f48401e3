import PrismBase
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismStore

@Suite("The clock's settings")
struct ClockBookTests {
  private static func setting(_ bootTime: Int64) -> ClockSetting { ClockSetting(bootTime: bootTime) }

  private struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let book: String
    let stamp: (String, Int64)
    var createdTime: Int64 = 1_700_000_000_000
    let expected: ClockCorrection
  }

  private static let cases = [
    Case(
      testDescription: "the present setting", book: "a 1000000 -", stamp: ("a", 1_000_000), expected: .init()),
    Case(
      testDescription: "the clock was set in this boot", book: "a 9000000 set", stamp: ("a", 1_000_000),
      expected: .init(step: 8_000_000)),
    Case(
      testDescription: "an earlier boot, whose clock was set in the end", book: "a 9000000 set;b 5 -",
      stamp: ("a", 1_000_000), expected: .init(step: 8_000_000, isOfEarlierBoot: true)),
    Case(
      testDescription: "an earlier boot, and the clock began with an old time again", book: "a 1699999000000 -;b 5 -",
      stamp: ("a", 1_699_999_000_000), expected: .init(isOfEarlierBoot: true)),
    Case(
      testDescription: "an earlier boot, and the clock went on", book: "a 1699999000000 -;b 1700000001000 -",
      stamp: ("a", 1_699_999_000_000), expected: .init()),
    Case(
      testDescription: "a boot that is not known any more", book: "b 1700000001000 set", stamp: ("a", 7),
      expected: .init()),
  ]

  @Test("a row's time is corrected by its own boot", arguments: cases)
  private func corrects(_ test: Case) {
    let stamp = ClockStamp(bootID: test.stamp.0, setting: Self.setting(test.stamp.1))
    #expect(ClockBook(test.book).correction(of: stamp, createdTime: test.createdTime) == test.expected)
  }

  @Test("the book keeps the last setting of 32 boots, and is written when one changes by more than a second")
  func keeps() {
    var book = ClockBook("")
    for number in 0..<40 { book.observe(Self.setting(Int64(number)), in: "boot\(number)") }
    #expect(book.boots.count == 32 && book.boots.first?.id == "boot8" && book.boots.last?.id == "boot39")
    book.needsWriting = false
    book.observe(Self.setting(1039), in: "boot39")
    #expect(!book.needsWriting && book.boots.last?.wasSet == false)
    book.observe(Self.setting(5039), in: "boot39")
    #expect(book.needsWriting && book.boots.last == .init(id: "boot39", setting: Self.setting(5039), wasSet: true))
    #expect(ClockBook(book.text).boots == book.boots)
  }

  @Test("a damaged book is an empty one", arguments: ["x", "a b c", "a 1", ";;", "a 99999999999999999999 set"])
  func damaged(text: String) { #expect(ClockBook(text).boots.isEmpty) }

  // MARK: In packets

  /// A connection's common information with its stamp.
  private static func context(_ rig: Rig, boot: String) -> CommonContext {
    let bootTime = ClockReading(rig.time).setting.bootTime
    return CommonContext(
      members: Array(#""APP_NAME":"pos","SYS_BOOT_ID":"\#(boot)","SYS_BOOT_TIME":"\#(bootTime)""#.utf8))
  }

  private static func times(_ packet: ClaimedPacket?) throws -> [Int64] {
    try #require(packet).rows.map { row in
      let meta = try JSONValue(parsing: row)
      let step = meta["SYS_CLOCK_STEP"]?.string.flatMap { Int64($0) } ?? 0
      return Int64(try #require(meta["CREATE_TIME"]?.int)) + step
    }
  }

  @Test(
    "rows of before and after a step leave with the times of one clock, whether they hold their context themselves or not",
    arguments: [3, 30])
  func step(rows: Int) async throws {
    let rig = Rig()
    let store = try await rig.open { $0.bootID = "a" }
    _ = await store.append([rig.batch(0..<rows, context: Self.context(rig, boot: "a"))])
    rig.time.advance(by: .seconds(60))
    rig.time.stepWallClock(milliseconds: 5_000_000)
    _ = await store.append([rig.batch(rows..<2 * rows, context: Self.context(rig, boot: "a"))])
    let packet = try await store.claim(rig.claim())
    let times = try Self.times(packet)
    let now = rig.time.unixMilliseconds
    #expect(times == Array(repeating: now - 60_000, count: rows) + Array(repeating: now, count: rows))
    #expect(packet?.clock == ClockReading(rig.time).setting)
    await store.close()
  }

  @Test("a step that no commit saw is known when the packet is read again")
  func readAgain() async throws {
    let rig = Rig()
    let store = try await rig.open { $0.bootID = "a" }
    _ = await store.append([rig.batch(0..<20, context: Self.context(rig, boot: "a"))])
    let packet = try #require(try await store.claim(rig.claim()))
    rig.time.stepWallClock(milliseconds: -86_400_000)
    let again = try await store.read(packet.id)
    #expect(try Self.times(again) == Array(repeating: rig.time.unixMilliseconds, count: 20))
    #expect(again?.rows.count == packet.rows.count)
    await store.close()
  }

  @Test("after a boot with an old time, rows of the boot before keep the time that was set there")
  func earlierBoot() async throws {
    let rig = Rig()
    let stored = rig.time.unixMilliseconds
    try await storeBeforeStep(rig)
    rig.time.stepWallClock(milliseconds: 10_000 - rig.time.unixMilliseconds)
    let next = try await rig.open { $0.bootID = "b" }
    let packet = try await next.claim(rig.claim())
    #expect(try Self.times(packet) == Array(repeating: stored + 7_000_000, count: 20))
    let meta = try JSONValue(parsing: try #require(packet?.rows.first))
    #expect(meta["SYS_CLOCK_BOOT"]?.string == "earlier")
    await next.close()
  }

  private func storeBeforeStep(_ rig: Rig) async throws {
    let store = try await rig.open { $0.bootID = "a" }
    _ = await store.append([rig.batch(0..<20, context: Self.context(rig, boot: "a"))])
    rig.time.stepWallClock(milliseconds: 7_000_000)
    _ = try await store.claim(rig.claim(.prism))
    await store.close()
  }

  @Test("a crash that says its own time is not moved")
  func ownTime() async throws {
    let rig = Rig()
    let store = try await rig.open { $0.bootID = "a" }
    var batch = rig.batch(0..<1, context: Self.context(rig, boot: "a"))
    batch.rows[0].hasOwnCreateTime = true
    _ = await store.append([batch])
    rig.time.stepWallClock(milliseconds: 7_000_000)
    let row = try #require(try await store.claim(rig.claim())?.rows.first)
    #expect(try JSONValue(parsing: row)["SYS_CLOCK_STEP"] == nil)
    await store.close()
  }
}
