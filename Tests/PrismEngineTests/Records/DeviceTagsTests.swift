import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

@testable import PrismEngine

@Suite("Tags of the device's own file") struct DeviceTagsTests {
  private static func snapshot(_ tags: [String: String]) -> Snapshot {
    var snapshot = DeliveryRig.snapshot { $0.hasTags = true }
    snapshot.daemon.deviceTags = DeviceTags(tags)
    return snapshot
  }

  /// The operations on tags in a packet.
  private static func tags(in request: TransferRequest) -> [JSONValue] {
    guard let headers = request.packetHeaders, headers.kind == .records,
      let reader = try? PacketReader(cipher: .aes128GCM, key: DeliveryRig.key),
      let lines = try? reader.read(headers, body: request.body, mac: nil).metas.merged()
    else { return [] }
    return lines.compactMap { try? JSONValue(parsing: $0) }.filter { $0["table"] == "prism.tags" }
  }

  private static func sent(_ rig: DeliveryRig) -> [JSONValue] { rig.transport.requests.flatMap { tags(in: $0) } }

  @Test("they reach the server as one record, again after each change, and not again after a start")
  func sent() async throws {
    let rig = DeliveryRig()
    try await firstRun(rig)
    let again = try await rig.engine(Self.snapshot(["region": "us"]))
    await again.publish(Self.snapshot([:]))
    #expect(await rig.runs { Self.sent(rig).count == 3 })
    #expect(Self.sent(rig).last?["fields"] == .object([]), "an empty map takes them back, and the start sent no record")
    await again.stop()
  }

  private func firstRun(_ rig: DeliveryRig) async throws {
    let engine = try await rig.engine(Self.snapshot(["region": "eu"]))
    #expect(await rig.runs { Self.sent(rig).count == 1 })
    #expect(Self.sent(rig).first?["id"] == "device" && Self.sent(rig).first?["fields"] == ["region": "eu"])
    await engine.publish(Self.snapshot(["region": "us"]))
    #expect(await rig.runs { Self.sent(rig).count == 2 })
    #expect(Self.sent(rig).last?["fields"] == ["region": "us"])
    await engine.stop()
  }

  @Test("a file without tags writes no record")
  func silent() async throws {
    let rig = DeliveryRig()
    let engine = try await rig.engine()
    #expect(await engine.parts.store.records.tables(of: NamespaceName("shop")!).isEmpty)
    await engine.stop()
  }
}
