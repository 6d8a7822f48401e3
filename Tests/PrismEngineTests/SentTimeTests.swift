import PrismBase
import PrismPacket
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

@testable import PrismEngine

/// `Prism-Sent-Time` (docs/packet.md, "Clocks").
@Suite struct SentTimeTests {
  @Test("an attempt tells its time by the clock under which its rows were read, however the clock was set since")
  func afterStep() async throws {
    let time = ManualTime()
    let packet = ClaimedPacket(
      id: DeliveryTable.id(1), namespace: .prism, kind: .meta, ledgerHeader: "",
      metas: Array(#"{"a":1}"#.utf8), itemCount: 1, payloads: [], clock: ClockReading(time).setting)
    let builder = PacketBuilder(keys: KeyUse(file: nil, log: Logger(write: { _ in })))
    let built = try await builder.build(packet, DeliveryTable.seal, wifiOnly: [])
    let began = time.unixMilliseconds
    for step in [0, 86_400_000, -400_000_000] as [Int64] {
      time.stepWallClock(milliseconds: step)
      let sealed = try await builder.seal(built, dependsOn: nil, pendingCount: 0, at: time)
      #expect(sealed.headers.sentTime == began)
    }
    time.advance(by: .seconds(5))
    let later = try await builder.seal(built, dependsOn: nil, pendingCount: 0, at: time)
    #expect(later.headers.sentTime == began + 5000)
  }
}
