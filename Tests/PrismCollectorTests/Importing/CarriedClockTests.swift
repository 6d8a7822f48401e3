import PrismPacket
import PrismProtocol
import Testing

@testable import PrismCollector

/// The times of packets that come in files (docs/carrying.md).
@Suite struct CarriedClockTests {
  @Test("a week on the way corrects the times of a packet over the network, and not of one in a file")
  func week() throws {
    let context = PacketContext(
      deviceID: "d", namespace: .prism, packetID: PacketID("01a2081a-267f-7506-8c40-86188adb3e49")!, kind: .meta)
    let request = try CollectorTests.request(context, metas: [#"{"MONITOR_TYPE":"a","REPORT_ID":"r"}"#])
    let sent = try #require(try Delivery(request, kind: .meta, now: 0).headers.sentTime)
    let week: Int64 = 7 * 86_400_000
    #expect(try Delivery(request, kind: .meta, now: sent + week).clockCorrection == week)
    #expect(try Delivery(request, kind: .meta, now: nil).clockCorrection == 0)
  }
}
