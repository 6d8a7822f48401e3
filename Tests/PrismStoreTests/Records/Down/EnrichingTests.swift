import PrismProtocol
import PrismTestSupport
import Testing

@testable import PrismStore

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
    guard case .committed = await rig.store.append([batch], rules: [Rig.shop: ReportRules(enrichments: rules)]) else {
      return []
    }
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

  // MARK: By an indexed field

  private static let byEAN = RecordEnrichment(
    type: Rig.order, from: "n", table: DownRig.price.name, by: "ean", into: "PRICE", fields: ["a"])

  private static func indexed() async throws -> DownRig {
    var rig = try await DownRig()
    rig.tables[0].index = ["ean", "code"]
    return rig
  }

  @Test(
    "a record is found by what its indexed field holds, a text or a number",
    arguments: [
      (#""ean":"7""#, true), (#""ean":7"#, true), (#""ean":7.0"#, false), (#""ean":"07""#, false),
      (#""ean":true"#, false),
      (#""ean":[7]"#, false), (#""ean":null"#, false), (#""code":7"#, false), (#""other":7"#, false),
    ])
  func values(member: String, isFound: Bool) async throws {
    let rig = try await Self.indexed()
    try await rig.take("price", [DownRecord("x", #"{"a":1,\#(member)}"#)], sequence: 1)
    #expect(try await Self.metas(rig, 7...7, [Self.byEAN]) == [isFound ? ["a": 1] : .null])
    #expect(await rig.store.enrichments.missing == (isFound ? [:] : [Rig.shop: 1]))
  }

  @Test("an indexed field follows each change of its record: operations, whole tables, deletions")
  func followsChanges() async throws {
    let rig = try await Self.indexed()
    func found(_ numbers: ClosedRange<Int>) async throws -> [JSONValue] {
      try await Self.metas(rig, numbers, [Self.byEAN])
    }
    try await rig.take(
      "price", [DownRecord("x", #"{"a":1,"ean":1}"#), DownRecord("y", #"{"a":2,"ean":2}"#)], sequence: 1)
    #expect(try await found(1...3) == [["a": 1], ["a": 2], .null])
    _ = try await rig.apply(
      "price", [DownOperation(2, "price", "x", #"{"a":1,"ean":3}"#), DownOperation(3, "price", "y", nil)])
    #expect(try await found(1...3) == [.null, .null, ["a": 1]])
    // Of two the one with the least id.
    _ = try await rig.apply("price", [DownOperation(4, "price", "w", #"{"a":9,"ean":3}"#)])
    #expect(try await found(3...3) == [["a": 9]])
    _ = try await rig.apply("price", [DownOperation(5, "price", "w", nil)])
    #expect(try await found(3...3) == [["a": 1]])
    try await rig.take("price", [DownRecord("z", #"{"a":4,"ean":1}"#)], sequence: 9)
    #expect(try await found(1...3) == [["a": 4], .null, .null])
  }

  @Test("a table whose index was changed is taken again, and no record is found by a new field until then")
  func changedIndex() async throws {
    var rig = try await DownRig()
    let records = [DownRecord("x", #"{"a":1,"ean":1}"#)]
    try await rig.take("price", records, sequence: 1)
    rig.tables[0].index = ["ean"]
    try await rig.store.keepTables(rig.tables, of: Rig.shop)
    #expect(await rig.after("price") == nil)
    #expect(try await rig.apply("price", [DownOperation(2, "price", "x", "{}")]).end == .outdated)
    #expect(try await Self.metas(rig, 1...1, [Self.byEAN]) == [.null])
    #expect(await rig.ids("price") == ["x"], "programs read the old one")
    try await rig.take("price", records, sequence: 1)
    #expect(try await Self.metas(rig, 1...1, [Self.byEAN]) == [["a": 1]])
  }

  @Test("a record that is deleted with what it refers to is not found any more") func cascade() async throws {
    var rig = try await DownRig()
    rig.tables[1].index = ["ean"]
    var rule = Self.byEAN
    rule.table = DownRig.bundle.name
    try await rig.take("price", [DownRecord("p", "{}")], sequence: 1)
    try await rig.take("bundle", [DownRecord("b", #"{"price":"p","ean":1,"a":2}"#)], sequence: 1)
    #expect(try await Self.metas(rig, 1...1, [rule]) == [["a": 2]])
    _ = try await rig.apply("price", [DownOperation(2, "price", "p", nil)])
    #expect(try await Self.metas(rig, 1...1, [rule]) == [.null])
  }

  @Test("what reports were given last is kept up to its limit, also of the largest records") func cacheIsBounded() {
    var cache = EnrichmentCache()
    let large = [UInt8](repeating: 0x20, count: 10_000)
    for number in 0..<500 {
      let key = EnrichmentCache.Key(content: 1, by: nil, value: "\(number)", fields: ["a"])
      cache.add(large, key, generation: 1)
      #expect(cache.find(key, generation: 1) == large && cache.find(key, generation: 2) == nil)
      #expect(cache.bytes <= 512 * 1024)
    }
    #expect(cache.bytes > 0)
  }

  @Test("a report that would be too large stays as it is") func large() async throws {
    let rig = try await DownRig()
    let large = #"{"a":"\#(String(repeating: "x", count: 10_150))"}"#
    try await rig.take("price", [DownRecord("1", large)], sequence: 1)
    #expect(try await Self.metas(rig, 1...1) == [.null])
  }
}
