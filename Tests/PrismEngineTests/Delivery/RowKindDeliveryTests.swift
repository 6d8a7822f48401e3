import Foundation
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

@testable import PrismEngine

/// Holds without a third kind of row, and with the one of Tests/Extending/thirdRowKind.patch (docs/extending.md, "Add a
/// row kind"). That kind takes the rows with payloads in place of the kind `payload`.
@Suite struct RowKindDeliveryTests {
  /// The kinds in which a report with a payload has a row.
  private static let stored: [RowKind] = [RowKind.reports[0], RowKind.reports[RowKind.reports.count - 1]]

  @Test("there are two kinds of rows, and a third one where the patch is active") func kinds() {
    let isExtended = ProcessInfo.processInfo.environment["PRISM_MUTANT"] == "thirdRowKind"
    #expect(RowKind.reports.map(\.name) == ["meta", "payload"] + (isExtended ? ["third"] : []))
    for (index, kind) in RowKind.reports.enumerated() {
      #expect(kind.number == index && RowKind(numbered: index) == kind && RowKind(named: kind.name) == kind)
    }
    #expect(Set(RowKind.reports.map(\.tablePrefix)).count == RowKind.reports.count)
    #expect(Set(RowKind.reports.map(\.path)).count == RowKind.reports.count)
  }

  @Test("rows of each kind leave in packets of their own kind, and settle") func delivers() async throws {
    let rig = DeliveryRig()
    let engine = try await rig.engine()
    await rig.report(1...3, of: "scan", payload: [1, 2, 3], to: engine)
    for kind in Self.stored {
      #expect(try await rig.runs { try await DeliveryTests.ledger(engine, kind)[.delivered] == 3 }, "\(kind.name)")
      let requests = rig.transport.requests.filter { $0.url.hasSuffix(kind.path) }
      #expect(try requests.flatMap(DeliveryRig.numbers) == [1, 2, 3], "\(kind.name)")
      #expect(requests.allSatisfy { $0.header("Content-Type") == kind.contentType })
      #expect(try await DeliveryTests.ledger(engine, kind).isBalanced)
    }
    await engine.stop()
  }
}
