import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

@Suite("Reports that get fields of records") struct EnrichingTests {
  private static let rule = RecordEnrichment(
    type: Rig.order, from: "n", table: DownRig.price.name, into: "PRICE", fields: ["a", "b"])

  /// The metas of reports with `n` and more members, by a rule.
  private static func metas(
    _ rig: DownRig, _ numbers: ClosedRange<Int>, _ rules: [RecordEnrichment] = [rule], of type: ReportType = Rig.order,
    context: String = #""APP_NAME":"pos""#, payload: [UInt8]? = nil
  ) async throws -> [JSONValue] {
    let batch = rig.records.rig.batch(
      numbers, of: type, payload: payload, context: CommonContext(members: Array(context.utf8)))
    guard case .committed = await rig.store.append([batch], enrichedBy: [Rig.shop: rules]) else { return [] }
    let packet = try await rig.store.claim(rig.records.rig.claim())
    if let packet { try await rig.store.settle(.delivered(packet.id, receipt: rig.records.rig.receipt)) }
    return (packet?.rows ?? []).compactMap { try? JSONValue(parsing: $0)["PRICE"] ?? .null }
  }

  @Test("a report gets the fields that its record has, also after the record changed; others stay as they are")
  func fields() async throws {
    let rig = try await DownRig()
    try await rig.take("price", [DownRecord("1", #"{"a":1,"c":2,"b":"x"}"#), DownRecord("2", "{}")], sequence: 1)
    #expect(try await Self.metas(rig, 1...3) == [["a": 1, "b": "x"], [:], .null])
    _ = try await rig.apply(
      "price", [DownOperation(2, "price", "1", #"{"a":5}"#), DownOperation(3, "price", "2", nil)])
    #expect(try await Self.metas(rig, 1...2) == [["a": 5], .null])
    #expect(try await Self.metas(rig, 1...1, of: Rig.click) == [.null])
    #expect(try await Self.metas(rig, 1...1, payload: [1, 2]) == [["a": 5]])
    let counts = await rig.store.enrichments
    #expect(counts.added == [Rig.shop: 4] && counts.missing == [Rig.shop: 2])
  }

  @Test("the id may be common information, and a member of the same name stays") func context() async throws {
    let rig = try await DownRig()
    try await rig.take("price", [DownRecord("k", #"{"a":1}"#)], sequence: 1)
    var rule = Self.rule
    rule.from = "SKU"
    #expect(try await Self.metas(rig, 1...1, [rule], context: #""SKU":"k""#) == [["a": 1]])
    #expect(try await Self.metas(rig, 1...1, [rule], context: #""SKU":"k","PRICE":7"#) == [7])
    #expect(try await Self.metas(rig, 1...1, [rule], context: #""APP_NAME":"pos""#) == [.null])
    #expect(await rig.store.enrichments.missing.isEmpty)
  }

  @Test("a report that would be too large stays as it is") func large() async throws {
    let rig = try await DownRig()
    let large = #"{"a":"\#(String(repeating: "x", count: 10_150))"}"#
    try await rig.take("price", [DownRecord("1", large)], sequence: 1)
    #expect(try await Self.metas(rig, 1...1) == [.null])
  }
}
