import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

@Suite("Reports that filters keep from becoming rows")
struct FilteredReportTests {
  private static let window: Int64 = 60_000

  /// Reports that are equal to all others with the same `key`.
  private static func batch(
    _ rig: Rig, _ numbers: some Sequence<Int>, key: UInt64 = 1, ids: [String]? = nil, payload: [UInt8]? = nil,
    from userID: UInt32 = 1000, quota: StoreQuota = StoreQuota(bytesMax: 1 << 30, evictsOldest: false)
  ) -> ReportBatch {
    var batch = rig.batch(numbers, payload: payload, ids: ids, quota: quota, from: userID)
    let repeated = ReportBatch.Repeat(
      high: key, low: key, arrivedTime: rig.time.unixMilliseconds, windowMilliseconds: window)
    batch.marks = batch.rows.indices.map { ($0, .repeatable(repeated)) }
    return batch
  }

  private static func append(_ store: ReportStore, _ batch: ReportBatch) async throws -> BatchOutcome {
    guard case .committed(let outcomes) = await store.append([batch]) else { throw Failed() }
    return outcomes[0]
  }

  /// The store as a `kill -9` after `work` leaves it.
  private static func reopened(_ rig: Rig, _ work: (ReportStore) async throws -> Void) async throws -> ReportStore {
    do {
      let store = try await rig.open()
      try await work(store)
      rig.keepAsKilled()
      await store.close()
    }
    rig.restoreKilled()
    return try await rig.open()
  }

  private struct Failed: Error {}

  /// `n` and `REPEAT_COUNT` of each row that is stored.
  private static func counts(_ store: ReportStore, _ kind: RowKind = .meta) async throws -> [[Int]] {
    try await store.export(Rig.shop, kind, after: 0, limit: 1000).map { row in
      let meta = try JSONValue(parsing: row.meta)
      return [meta["n"]?.int ?? 0, meta["REPEAT_COUNT"]?.int ?? 1]
    }
  }

  private static func filtered(_ store: ReportStore) async throws -> FilterCounts {
    try await store.status()[Rig.shop]?[.meta]?.filtered ?? FilterCounts()
  }

  @Test("a report that is left out is counted with its commit, and the count survives a kill")
  func sampled() async throws {
    let rig = Rig()
    var marked = rig.batch(0..<5)
    marked.marks = [(1, .sampledOut), (3, .sampledOut)]
    let batch = marked
    let again = try await Self.reopened(rig) { store in
      let outcome = try await Self.append(store, batch)
      #expect(outcome.exceptions.map(\.row) == [1, 3])
      #expect(outcome.exceptions.allSatisfy { $0.what == .sampledOut })
      #expect(try await Self.counts(store).map(\.first) == [0, 2, 4])
    }
    #expect(try await Self.filtered(again).sampled == 2)
    #expect(try await again.ledger().stored == 3)
  }

  @Test("a flood of equal reports is one row with its count, in one commit and over many")
  func flood() async throws {
    let rig = Rig()
    let store = try await rig.open()
    let first = try await Self.append(store, Self.batch(rig, 0..<500))
    #expect(first.exceptions.count == 499)
    for round in 1...4 {
      rig.time.advance(by: .seconds(1))
      let outcome = try await Self.append(store, Self.batch(rig, round * 500..<(round + 1) * 500))
      #expect(outcome.exceptions.count == 500 && Set(outcome.ids) == [first.ids[0]])
    }
    #expect(try await Self.counts(store) == [[0, 2500]])
    #expect(try await Self.filtered(store).collapsed == 2499)
    let row = try JSONValue(parsing: try await store.export(Rig.shop, .meta, after: 0, limit: 1)[0].meta)
    #expect((row["REPEAT_LAST"]?.int ?? 0) - (row["REPEAT_FIRST"]?.int ?? 0) == 4000)
    let status = try #require(try await store.status()[Rig.shop]?[.meta])
    #expect(status.ledger.isBalanced && status.ledger.stored == 1)
    #expect((200...400).contains(status.bytes), "\(status.bytes)")
    #expect(try await store.check() == [])
  }

  @Test("counting goes on only in the window, for the same user and the same fields")
  func window() async throws {
    let rig = Rig()
    let store = try await rig.open()
    _ = try await Self.append(store, Self.batch(rig, [1]))
    _ = try await Self.append(store, Self.batch(rig, [2], key: 2))
    _ = try await Self.append(store, Self.batch(rig, [3], from: 2000))
    rig.time.advance(by: .milliseconds(Self.window - 1))
    _ = try await Self.append(store, Self.batch(rig, [4]))
    rig.time.advance(by: .milliseconds(1))
    _ = try await Self.append(store, Self.batch(rig, [5]))
    #expect(try await Self.counts(store) == [[1, 2], [2, 1], [3, 1], [5, 1]])
  }

  @Test("a row that is in a packet does not change, and no report is lost or counted twice")
  func claimed() async throws {
    let rig = Rig()
    let store = try await rig.open()
    _ = try await Self.append(store, Self.batch(rig, 0..<3))
    let packet = try #require(try await store.claim(rig.claim()))
    _ = try await Self.append(store, Self.batch(rig, 3..<5))
    #expect(try await Self.counts(store) == [[0, 3], [3, 2]])
    try await store.settle(.delivered(packet.id, receipt: rig.receipt))
    _ = try await Self.append(store, Self.batch(rig, 5..<6))
    #expect(try await Self.counts(store) == [[3, 3]])
    #expect(try await Self.filtered(store).collapsed == 2 + 1 + 1)
    let ledger = try await store.ledger()
    #expect(ledger.isBalanced && ledger.stored == 2)
  }

  @Test("a count that was answered survives a kill; then the next equal report begins a row")
  func killed() async throws {
    let rig = Rig()
    let again = try await Self.reopened(rig) { store in
      _ = try await Self.append(store, Self.batch(rig, 0..<3))
    }
    #expect(try await Self.counts(again) == [[0, 3]])
    _ = try await Self.append(again, Self.batch(rig, 3..<5))
    #expect(try await Self.counts(again) == [[0, 3], [3, 2]])
    #expect(try await Self.filtered(again).collapsed == 3)
  }

  @Test("a report that is sent again under its id is not counted again, and the answer names the first one's id")
  func sentAgain() async throws {
    let rig = Rig()
    let store = try await rig.open()
    let first = try await Self.append(store, Self.batch(rig, 0..<2, ids: ["a", "b"]))
    #expect(first.exceptions.map(\.what) == [.collapsed(reportID: Array("a".utf8))])
    let again = try await Self.append(store, Self.batch(rig, 0..<2, ids: ["b", "a"]))
    #expect(again.exceptions.map(\.what) == [.duplicate, .duplicate])
    #expect(try await Self.counts(store) == [[0, 2]])
  }

  @Test("the row with the payload counts too, and keeps the first one's payload")
  func payload() async throws {
    let rig = Rig()
    let store = try await rig.open()
    _ = try await Self.append(store, Self.batch(rig, 0..<3, payload: [1, 2, 3]))
    #expect(try await Self.counts(store, .payload) == [[0, 3]])
    #expect(try await store.export(Rig.shop, .payload, after: 0, limit: 9).map(\.payload) == [[1, 2, 3]])
    #expect(try await store.claim(rig.claim(Rig.shop, .payload))?.itemCount == 1, "its checksum is right")
  }

  @Test("a flood of equal reports evicts nothing from a full namespace")
  func quota() async throws {
    let rig = Rig()
    let store = try await rig.open()
    let quota = StoreQuota(bytesMax: 4000, evictsOldest: true)
    _ = try await Self.append(store, rig.batch(0..<15, quota: quota))
    _ = try await Self.append(store, Self.batch(rig, [100], quota: quota))
    _ = try await Self.append(store, Self.batch(rig, 101..<601, quota: quota))
    let ledger = try await store.ledger()
    #expect(ledger[.evicted] == 0 && ledger.stored == 16)
    #expect(try await Self.counts(store).last == [100, 501])
  }
}
