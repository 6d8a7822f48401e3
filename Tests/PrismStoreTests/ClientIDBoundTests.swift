import PrismProtocol
import PrismSQLite
import PrismStore
import PrismTestSupport
import Testing

@Suite("Ids of reports that left have a bound of their own")
struct ClientIDBoundTests {
  /// How ids outlive the rows of their reports.
  enum Way: CaseIterable { case delivered, collapsed, run }

  private static let quota = StoreQuota(bytesMax: 1 << 20, evictsOldest: true)
  private static let (quiet, loud): (UInt32, UInt32) = (1000, 70_000)
  private static let perCommit = 250
  private let rig = Rig()

  private struct Failed: Error {}

  /// - Returns: how many were duplicates.
  @discardableResult private func append(_ batches: [ReportBatch], to store: ReportStore) async throws -> Int {
    guard case .committed(let outcomes) = await store.append(batches) else { throw Failed() }
    return outcomes.flatMap(\.exceptions).count { if case .duplicate = $0.what { true } else { false } }
  }

  private func id(_ number: Int, _ userID: UInt32) -> String {
    let text = "\(userID)-\(number)-"
    return text + String(repeating: "x", count: 60 - text.count)
  }

  private func batches(_ numbers: Range<Int>, _ way: Way, from userID: UInt32) -> [ReportBatch] {
    if way == .run {
      return numbers.map { number in
        let prefix = id(number, userID)
        var batch = rig.batch([number], ids: [prefix + "0"], quota: Self.quota, from: userID)
        batch.run = ReportBatch.Run(
          ReportIDRun(ReportID(prefix)!, first: 0, count: 1)!, batchCount: 1, isWhole: true)
        return batch
      }
    }
    var batch = rig.batch(numbers, ids: numbers.map { id($0, userID) }, quota: Self.quota, from: userID)
    if way == .collapsed {
      let repeated = ReportBatch.Repeat(
        high: 1, low: UInt64(userID), arrivedTime: rig.time.unixMilliseconds, windowMilliseconds: 1 << 40)
      batch.marks = batch.rows.indices.map { ($0, .repeatable(repeated)) }
    }
    return [batch]
  }

  private func flood(
    _ store: ReportStore, _ numbers: Range<Int>, _ way: Way, from userID: UInt32
  ) async throws {
    for first in stride(from: numbers.lowerBound, to: numbers.upperBound, by: Self.perCommit) {
      try await append(batches(first..<first + Self.perCommit, way, from: userID), to: store)
      rig.time.advance(by: .milliseconds(10))
      guard way == .delivered else { continue }
      while let packet = try await store.claim(rig.claim()) {
        try await store.settle(.delivered(packet.id, receipt: rig.receipt))
      }
    }
  }

  private func known() throws -> Int {
    Int(try SQLiteConnection(.init(path: rig.path)).firstInt("SELECT count(*) FROM client_ids") ?? -1)
  }

  @Test(
    "a user who fills it loses its own oldest ids, counted, and a user who holds fewer loses nothing",
    arguments: Way.allCases, [false, true])
  func floods(way: Way, isRestarted: Bool) async throws {
    var store: ReportStore? = try await rig.open()
    try await flood(store!, 0..<500, way, from: Self.quiet)
    try await flood(store!, 0..<3000, way, from: Self.loud)
    if isRestarted {
      await store!.close()
      store = nil
      store = try await rig.open()
    }
    try await flood(store!, 3000..<8000, way, from: Self.loud)
    let forgotten = try await store!.status()[Rig.shop]?[.meta]?.filtered.forgottenIDs ?? 0
    #expect(forgotten > 4000, "\(forgotten)")
    #expect(try known() == 8500 - forgotten, "each is counted")
    func duplicates(_ numbers: Range<Int>, from userID: UInt32) async throws -> Int {
      try await append(batches(numbers, way, from: userID), to: store!)
    }
    #expect(try await duplicates(0..<500, from: Self.quiet) == 500)
    #expect(try await duplicates(7000..<8000, from: Self.loud) == 1000)
    #expect(try await duplicates(10..<20, from: Self.loud) == 0, "such a report is stored again")
    #expect(try await store!.ledger().isBalanced)
    await store!.close()
  }

  @Test("a payload that is delivered after its meta has one id, which counts once")
  func payload() async throws {
    let store = try await rig.open()
    for first in stride(from: 0, to: 3000, by: Self.perCommit) {
      let numbers = first..<first + Self.perCommit
      let batch = rig.batch(
        numbers, payload: [1], ids: numbers.map { id($0, Self.quiet) }, quota: Self.quota, from: Self.quiet)
      try await append([batch], to: store)
      for kind in RowKind.reports {
        while let packet = try await store.claim(rig.claim(Rig.shop, kind)) {
          try await store.settle(.delivered(packet.id, receipt: rig.receipt))
        }
      }
    }
    #expect(try await store.status()[Rig.shop]?[.meta]?.filtered.forgottenIDs == 0)
    await store.close()
  }
}
