import PrismOutputs
import PrismProtocol
import PrismSQLite
import Testing

@testable import PrismCollector

/// A block's row says which devices it has.
@Suite("The devices of a block") struct BlockDevicesTests {
  private static func devices(_ range: Range<Int>) -> Set<String> { Set(range.map { "till-\($0 * 7919)" }) }

  @Test("each device is found, and of others one in a hundred", arguments: [1, 64, 65, 500, 4900])
  func found(count: Int) throws {
    let text = try #require(BlockDevices.text(of: Self.devices(0..<count)))
    #expect(text.utf8.count <= 8192)
    #expect(Self.devices(0..<count).allSatisfy { BlockDevices.mayHave($0, text) })
    let others = Self.devices(10_000..<20_000).count { BlockDevices.mayHave($0, text) }
    #expect(others <= (count > 64 ? 200 : 0))
  }

  @Test("devices that have no room in a row exclude nothing: too many, or with long names")
  func tooMany() {
    #expect(BlockDevices.text(of: Self.devices(0..<6000)) == nil)
    let long = Set((0..<40).map { "\($0)" + String(repeating: "x", count: 240) })
    #expect(BlockDevices.text(of: long)?.first == "~")
  }

  @Test("a filter that is damaged excludes nothing", arguments: ["~", "~=", "~AB", "~%%%%"])
  func damaged(text: String) { #expect(BlockDevices.mayHave("till-1", text)) }

  @Test("a device of a merged block of many devices is found whole")
  func questions() async throws {
    let rig = StoreRig()
    let store = try rig.sqlite()
    for number in 0..<120 {
      // So large that most of them are merged.
      let pad = #""pad":"\#(String(repeating: "x", count: 4000))""#
      let packet = try StoreRig.packet(
        Array(number * 12..<number * 12 + 12), device: "till-\(number)", members: { _ in pad })
      _ = try await store.take(packet)
    }
    while try await store.maintain() {}
    let texts =
      try SQLiteConnection(.init(path: rig.path + "/collector.db", isReadOnly: true))
      .firstText("SELECT group_concat(devices, char(10)) FROM blocks")?.split(separator: "\n").map { String($0) } ?? []
    #expect(texts.contains { $0.first == "~" })
    for number in [0, 17, 95, 119] {
      let device = "till-\(number)"
      var filter = ReportFilter(scope: .everything)
      (filter.device, filter.limit) = (device, 1000)
      let found = try await store.page(filter)
      #expect(found.count == 12 && found.allSatisfy { $0.device == device })
      #expect(texts.contains { BlockDevices.mayHave(device, $0) })
    }
    await store.close()
  }
}
