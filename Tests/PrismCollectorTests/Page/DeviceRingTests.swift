import PrismHTTP
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismCollector

/// Kept reports of devices, by their hourly reports (docs/recorder.md, "The hourly report").
@Suite struct DeviceRingTests {
  private static func hour(_ kept: Int, junk: String = "") -> String {
    let types = ["log", "trace.x"].map {
      #"{"type":"\#($0)","kept":\#(kept),"bytes":\#(kept * 500),"overwritten":1,"triggered":2,"asked":3,"refused":4,"declined":5}"#
    }
    return #""seconds":3600,"types":[\#(types.joined(separator: ","))\#(junk)]"#
  }

  private func take(_ rig: PageRig, _ device: String, _ meta: String, number: Int) async throws {
    _ = try await rig.collector.store.take(
      StoreRig.packet([number], device: device, type: "ringHealth", reportPrefix: device, members: { _ in meta }))
  }

  @Test("the newest hour of each device counts, by type, in the reader's namespaces") func newest() async throws {
    let rig = try PageRig()
    try await take(rig, "a", Self.hour(900), number: 1)
    try await take(rig, "a", Self.hour(10), number: 2)
    try await take(
      rig, "b", Self.hour(5, junk: #",7,{"type":"log","kept":-9,"bytes":1e300},{"type":" ","kept":1}"#), number: 1)
    let all = try await rig.json("/rings", [("namespace", "prism")])
    #expect(all["types"]?.array?.map { $0["type"]?.string } == ["log", "trace.x"], "\(all.text)")
    for type in all["types"]?.array ?? [] {
      #expect(type["kept"] == 15 && type["asked"] == 6 && type["refused"] == 8 && type["declined"] == 10)
    }
    let some = try await rig.json("/rings", [("type", "trace.*")])
    #expect(some["devices"]?.array?.map { $0["kept"]?.int } == [5, 10])
    #expect(some["devices"]?.array?.map { $0["bytes"]?.int } == [2500, 5000])
    #expect(try await rig.json("/rings", [("device", "a")])["types"]?.array?.first?["kept"] == 10)
    #expect(try await rig.json("/rings", [("namespace", "other")])["devices"]?.array?.isEmpty == true)
    #expect(await rig.ask("/rings", [("type", "no type")]).status == 400)
    await rig.collector.close()
  }
}
