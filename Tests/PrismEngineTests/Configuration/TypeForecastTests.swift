import PrismConfig
import PrismProtocol
import PrismStore
import Testing

@testable import PrismEngine

@Suite("What another monitorList would do to stored rows")
struct TypeForecastTests {
  private static let order = ReportType("order")!
  private static let plain = MonitoredType(order)
  private static let paid = MonitoredType(order, isUploadPayload: true)
  private static let wifi = MonitoredType(order, onlyWifi: true)

  static let cases: [(old: [MonitoredType], new: [MonitoredType], words: [String])] = [
    ([plain], [plain], []),
    ([plain], [MonitoredType(order, isRealtime: true)], []),
    ([plain], [], ["1,204 rows of order would still be sent, and no new ones be taken"]),
    (
      [paid], [],
      [
        "1,204 rows of order would still be sent, and no new ones be taken",
        "1 payload of order would stay until expiry",
      ]
    ),
    ([paid], [plain], ["1 payload of order would stay until expiry"]),
    ([plain], [paid], ["1 payload of order would be sent"]),
    ([], [paid], ["1 payload of order would be sent"]),
    ([plain], [wifi], ["1,204 rows of order would stay while the network is metered"]),
    ([wifi], [plain], ["1,204 rows of order would be sent on metered networks too"]),
  ]

  @Test("is shown by type and kind, with counts", arguments: cases)
  func words(old: [MonitoredType], new: [MonitoredType], words: [String]) {
    var counts = TypeCounts()
    (counts.metas, counts.payloads) = ([Self.order: 1204], [Self.order: 1])
    let entries = TypeForecast(from: old, to: new).entries(of: .prism, counts)
    #expect(entries.map(\.words) == words)
    #expect(entries.allSatisfy { $0.isExact && $0.key == "monitorList" })
  }

  @Test("counts that are not exact are the least")
  func atLeast() {
    var counts = TypeCounts()
    (counts.metas, counts.isComplete) = ([Self.order: 2], false)
    let entries = TypeForecast(from: [Self.plain], to: []).entries(of: .prism, counts)
    #expect(entries.first?.words.hasPrefix("at least 2 rows of order") == true && entries.first?.isExact == false)
  }
}
