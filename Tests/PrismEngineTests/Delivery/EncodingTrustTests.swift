import PrismConfig
import PrismPacket
import PrismProtocol
import PrismStore
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismEngine

@Suite("A receiver that announces an encoding and refuses it")
struct EncodingTrustTests {
  private static func entry(_ encoding: PacketEncoding, leavesInGzip: Bool = false) -> InFlightQueue.Entry {
    var entry = InFlightQueue.Entry(id: DeliveryTable.id(1), itemCount: 1, mayHaveLeft: true, content: .stored)
    entry.lastAttempt.format = BlockFormat(cipher: .aes128GCM, keyID: "main", encoding: encoding)
    entry.leavesInGzip = leavesInGzip
    return entry
  }

  @Test("three packets in a row that only gzip gets through ask for an hour of gzip; one in zstd counts from 0 again")
  func counts() {
    var trust = EncodingTrust()
    for _ in 0..<2 { trust.accepted(Self.entry(.gzip, leavesInGzip: true), now: .zero) }
    trust.accepted(Self.entry(.zstd), now: .zero)
    for _ in 0..<2 { trust.accepted(Self.entry(.gzip, leavesInGzip: true), now: .seconds(5)) }
    trust.accepted(Self.entry(.gzip), now: .seconds(5))
    #expect(!trust.isGzipOnly(now: .seconds(5)))
    trust.accepted(Self.entry(.gzip, leavesInGzip: true), now: .seconds(5))
    #expect(trust.isGzipOnly(now: .seconds(5)) && trust.isGzipOnly(now: .seconds(3604)))
    #expect(!trust.isGzipOnly(now: .seconds(3605)))
  }

  @Test("halves of a packet with a bad report say nothing of the encoding")
  func halves() {
    var (trust, half) = (EncodingTrust(), Self.entry(.gzip, leavesInGzip: true))
    half.isHalf = true
    for _ in 0..<10 { trust.accepted(half, now: .zero) }
    #expect(!trust.isGzipOnly(now: .zero))
  }

  @Test("such a receiver gets three packets twice, and the others once, in gzip; a reload tries again")
  func delivery() async throws {
    let rig = DeliveryRig()
    rig.transport.set { request in
      guard request.packetHeaders?.format.encoding == .gzip else {
        return ScriptedTransport.answer(422, to: request)
      }
      var headers = ScriptedTransport.receipt(for: request)
      headers["prism-accept"] = "zstd"
      return ScriptedTransport.answer(200, headers, to: request)
    }
    func refused() -> Int { rig.transport.requests.count { $0.packetHeaders?.format.encoding == .zstd } }
    let engine = try await rig.engine(DeliveryRig.snapshot { $0.maxItem = 1 })
    await rig.report(0..<20, to: engine)
    #expect(await rig.runs { rig.transport.requests.count - refused() == 20 })
    #expect(refused() == EncodingTrust.refusalsMax)
    await engine.publish(DeliveryRig.snapshot { ($0.maxItem, $0.maxBodyBytes) = (1, 1_000_000) })
    await rig.report([20], to: engine)
    #expect(await rig.runs { rig.transport.requests.count - refused() == 21 })
    #expect(refused() == EncodingTrust.refusalsMax + 1)
    await engine.stop()
  }

  @Test("the dictionary of a packet that is refused with 415 is left out, and no other one")
  func dictionary() {
    let attempt = DeliveryDecision.Attempt(
      packet: DeliveryTable.id(1), itemCount: 2, attempts: 1, mayNotBeTaken: true, hasDictionary: true, now: 0)
    func decision(_ status: Int) -> DeliveryDecision {
      DeliveryDecision(.unprovenRefusal(status: status, message: ""), attempt) { DeliveryTable.id(2) }
    }
    #expect(decision(415) == .withoutDictionary && decision(422) == .inGzip)

    var queue = InFlightQueue()
    queue.recover([PacketInFlight(id: DeliveryTable.id(1), itemCount: 2)], lastAccepted: nil)
    queue.began(
      DeliveryTable.id(1),
      .init(format: BlockFormat(cipher: .aes128GCM, keyID: "main", encoding: .zstd, dictionaryID: 7)))
    #expect(queue[DeliveryTable.id(1)]?.lastAttempt.format?.dictionaryID == 7)
    var table = DeliveryTable()
    for step in DeliveryTableTests.onItsWay { _ = table.after(step.event) }
    _ = table.after(DeliveryTable.answers(1, .unknownDictionary))
    #expect(table.delivery.receiver.features.refusedDictionaryID == nil, "the packet had no dictionary")
  }
}
