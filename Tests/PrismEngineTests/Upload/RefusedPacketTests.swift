import PrismConfig
import PrismProtocol
import PrismStore
import Testing

@testable import PrismEngine

@Suite("A packet that the collector can't take")
struct RefusedPacketTests {
  @Test("is halved, down to the one report, and never sent again as it is", arguments: [400, 413, 415, 422])
  func halved(status: Int) throws {
    var random = SystemRandomNumberGenerator()
    let ids = [ResponseClassTests.packet] + (0..<2).map { _ in PacketID(unixMilliseconds: 0, using: &random) }
    let proof = try ResponseClassTests.verdict(status)
    func settling(itemCount: Int) -> DeliveryDecision {
      let answer = PostAnswer(
        outcome: .response(status: status, headers: proof, body: []), mayHaveLeft: true, bytesSent: 1,
        bytesReceived: 1, duration: .zero)
      var halves = ids.dropFirst().makeIterator()
      return DeliveryDecision(
        ResponseClass.verdict(answer, to: ResponseClassTests.check(.required, of: ids[0]), now: 0),
        .init(packet: ids[0], itemCount: itemCount, attempts: 1, now: 0), newID: { halves.next()! })
    }
    #expect(
      settling(itemCount: 2)
        == .split(.split(ids[0], first: ids[1], second: ids[2]), first: ids[1], second: ids[2]))
    let cause = Disposition.DeadCause(status: status, message: "", unixMilliseconds: 0, attempts: 1)
    #expect(settling(itemCount: 1) == .settled(.dead(ids[0], cause: cause)))
  }
}
