import PrismBase
import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismEngine

@Suite("The way of a packet in the log") struct PacketLogTests {
  /// Lines of the log, taken apart.
  private final class Lines: Sendable {
    private let lines = Mutex<[String]>([])
    func append(_ line: String) { lines.withLock { $0.append(line) } }
    var all: [String] { lines.withLock { $0 } }

    /// The lines with a message, each with the value of `field`.
    func values(of field: String, in message: String) -> [String] {
      all.filter { $0.contains("debug \(message) ") }.map { line in
        line.split(separator: " ").first { $0.hasPrefix("\(field)=") }.map { String($0.dropFirst(field.count + 1)) }?
          .trimmed ?? ""
      }
    }
  }

  @Test("at debug each step has a line with the packet's id, and no line has content") func way() async throws {
    let (rig, lines) = (DeliveryRig(), Lines())
    let engine = try await rig.engine(log: Logger(level: .debug) { lines.append($0) })
    rig.transport.set { ScriptedTransport.answer(503, to: $0) }
    await rig.report([4_711_471_147, 4_711_471_148], to: engine)
    #expect(await rig.runs { rig.transport.requests.count >= 1 })
    rig.transport.set(ScriptedTransport.accept)
    #expect(try await rig.runs { try await DeliveryTests.ledger(engine)[.delivered] == 2 })
    await engine.stop()
    let ids = lines.values(of: "packet", in: "packet claimed")
    #expect(lines.values(of: "rows", in: "reports admitted") == ["2"])
    #expect(ids.count == 1 && lines.values(of: "rows", in: "packet claimed") == ["2"])
    #expect(Set(lines.values(of: "packet", in: "packet sent")) == Set(ids))
    #expect(lines.values(of: "verdict", in: "packet answered").last == "accepted")
    #expect(lines.values(of: "status", in: "packet answered").first == "503")
    #expect(lines.values(of: "packet", in: "packet settled") == ids)
    #expect(lines.values(of: "as", in: "packet settled") == ["delivered"])
    #expect(!lines.all.contains { $0.contains("4711471") })
  }

  @Test("at info the way is not logged") func info() async throws {
    let (rig, lines) = (DeliveryRig(), Lines())
    let engine = try await rig.engine(log: Logger(level: .info) { lines.append($0) })
    await rig.report([1], to: engine)
    #expect(try await rig.runs { try await DeliveryTests.ledger(engine)[.delivered] == 1 })
    await engine.stop()
    #expect(!lines.all.contains { $0.contains("packet ") })
  }
}
