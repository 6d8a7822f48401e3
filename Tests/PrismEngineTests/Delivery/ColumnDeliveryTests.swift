import PrismConfig
import PrismPacket
import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismEngine

@Suite("Columns for receivers that announce them")
struct ColumnDeliveryTests {
  private static func forms(_ rig: DeliveryRig) -> [PacketForm] {
    rig.transport.requests.compactMap { $0.packetHeaders?.format.form }
  }

  private static func answer(_ request: TransferRequest, accept: String?) -> PostAnswer {
    var headers = ScriptedTransport.receipt(for: request)
    headers["prism-accept"] = accept
    return ScriptedTransport.answer(200, headers, to: request)
  }

  @Test(
    "columns go to a receiver that announced them, from 50 rows on; another one gets rows",
    arguments: [
      ("zstd, columns", [.rows, .columns, .rows]), ("columns", [.rows, .columns, .rows]),
      ("zstd", [.rows, .rows, .rows]),
      (nil, [.rows, .rows, .rows]), ("columns2,column", [.rows, .rows, .rows]),
    ] as [(String?, [PacketForm])])
  func negotiated(accept: String?, forms: [PacketForm]) async throws {
    let rig = DeliveryRig()
    rig.transport.set { Self.answer($0, accept: accept) }
    let engine = try await rig.engine(DeliveryRig.snapshot { $0.maxItem = 100 })
    for (number, count) in [100, 100, 49].enumerated() {
      await rig.report(1000 * number..<1000 * number + count, to: engine)
      #expect(await rig.runs { rig.transport.requests.count > number })
    }
    #expect(Self.forms(rig) == forms)
    let numbers = try rig.transport.requests.map { try DeliveryRig.numbers($0) }
    #expect(numbers == [Array(0..<100), Array(1000..<1100), Array(2000..<2049)])
    await engine.stop()
  }

  @Test("a receiver that refuses columns after it announced them gets the packet as rows in gzip")
  func refused() async throws {
    let rig = DeliveryRig()
    rig.transport.set { request in
      guard request.packetHeaders?.format.form == .rows else { return ScriptedTransport.answer(422, to: request) }
      return Self.answer(request, accept: "columns")
    }
    let engine = try await rig.engine(DeliveryRig.snapshot { $0.maxItem = 100 })
    for number in 0..<2 {
      await rig.report(1000 * number..<1000 * number + 100, to: engine)
      #expect(await rig.runs { rig.transport.requests.count > 2 * number })
    }
    #expect(Self.forms(rig) == [.rows, .columns, .rows])
    #expect(try DeliveryRig.numbers(rig.transport.requests[2]) == Array(1000..<1100))
    await engine.stop()
  }
}
