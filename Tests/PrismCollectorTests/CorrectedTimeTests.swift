import PrismPacket
import PrismProtocol
import Testing

@testable import PrismCollector

/// The time that a report is stored under (docs/packet.md, "Clocks").
@Suite struct CorrectedTimeTests {
  private static let hour: Int64 = 3_600_000
  private static let minute: Int64 = 60_000

  private struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let members: String
    /// Milliseconds by which the device's clock is behind.
    var behind: Int64 = 0
    let expected: Int64?
  }

  private static let cases = [
    Case(testDescription: "a right clock", members: #""CREATE_TIME":1000"#, expected: 1000),
    Case(testDescription: "a clock behind", members: #""CREATE_TIME":1000"#, behind: hour, expected: 1000 + hour),
    Case(testDescription: "within a minute", members: #""CREATE_TIME":1000"#, behind: minute, expected: 1000),
    Case(
      testDescription: "a clock that was set since", members: #""CREATE_TIME":1000,"SYS_CLOCK_STEP":"-500""#,
      expected: 500),
    Case(
      testDescription: "both", members: #""CREATE_TIME":1000,"SYS_CLOCK_STEP":"500""#, behind: hour,
      expected: 1500 + hour),
    Case(
      testDescription: "an earlier boot's clock", members: #""CREATE_TIME":1000,"SYS_CLOCK_BOOT":"earlier""#,
      behind: hour, expected: 1000),
    Case(
      testDescription: "an earlier boot's clock that was set there",
      members: #""SYS_CLOCK_STEP":"7","SYS_CLOCK_BOOT":"earlier","CREATE_TIME":1000"#, behind: hour, expected: 1007),
    Case(
      testDescription: "a step that is no number", members: #""CREATE_TIME":1000,"SYS_CLOCK_STEP":"x""#,
      expected: 1000),
    Case(
      testDescription: "a step beyond all numbers",
      members: #""CREATE_TIME":1000,"SYS_CLOCK_STEP":"99999999999999999999""#, expected: 1000),
    Case(testDescription: "no time", members: #""SYS_CLOCK_STEP":"7""#, expected: nil),
  ]

  @Test(
    "a report's time is moved by what its device set, and by what the device's clock is wrong now", arguments: cases)
  private func corrected(_ test: Case) throws {
    let context = PacketContext(
      deviceID: "d", namespace: .prism, packetID: PacketID("01a2081a-267f-7506-8c40-86188adb3e49")!, kind: .meta)
    let meta = #"{"MONITOR_TYPE":"a","REPORT_ID":"r",\#(test.members)}"#
    let request = try CollectorTests.request(context, metas: [meta])
    let sent = try #require(try Delivery(request, kind: .meta, now: 0).headers.sentTime)
    let delivery = try Delivery(request, kind: .meta, now: sent + test.behind)
    let metas = try MetaBlock(parsing: Array(meta.utf8), rowsMax: 1)
    let packet = try OpenedPacket(delivery, ReadPacket(metas: metas, payloads: []))
    #expect(packet.rows.map(\.createdTime) == [test.expected])
  }
}
