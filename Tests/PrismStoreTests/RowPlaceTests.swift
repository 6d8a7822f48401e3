import Foundation
import PrismProtocol
import PrismStore
import PrismTestSupport
import Testing

/// SQLite numbers most rows itself: each must be where its answer says.
@Suite("The place of a stored row")
struct RowPlaceTests {
  let rig = Rig()

  @Test("is that of the answered id, in any order of priorities, namespaces and payloads")
  func ids() async throws {
    let store = try await rig.open()
    let seed = UInt64.random(in: 0...UInt64.max)
    var random = SeededRandom(seed: seed)
    var answered: Set<String> = []
    var count = 0
    for _ in 0..<40 {
      var batches: [ReportBatch] = []
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let rows = Int.random(in: 1...120, using: &random)
        batches.append(batch(count..<count + rows, &random))
        count += rows
      }
      guard case .committed(let outcomes) = await store.append(batches) else {
        Issue.record("not committed, seed \(seed)")
        return
      }
      for outcome in outcomes { answered.formUnion(outcome.ids.map { $0.reportID(epoch: outcome.epoch) }) }
    }
    #expect(answered.count == count)
    #expect(try await leaving(store) == answered, "seed \(seed)")
  }

  private func batch(_ numbers: Range<Int>, _ random: inout SeededRandom) -> ReportBatch {
    var batch = rig.batch(
      numbers, in: Bool.random(using: &random) ? Rig.shop : .prism,
      payload: Bool.random(using: &random) ? Array("payload".utf8) : nil)
    batch.types.append(.init(type: Rig.click, priority: .realtime, isRealtime: false))
    let isMixed = Bool.random(using: &random)
    for row in batch.rows.indices {
      if isMixed && Int.random(in: 0..<9, using: &random) == 0 { batch.rows[row].type = 1 }
      if Int.random(in: 0..<9, using: &random) == 0 { batch.rows[row].payload = nil }
    }
    return batch
  }

  private func leaving(_ store: ReportStore) async throws -> Set<String> {
    var ids: Set<String> = []
    for namespace in [Rig.shop, .prism] {
      while let packet = try await store.claim(rig.claim(namespace)) {
        for row in packet.rows { ids.insert(try JSONValue(parsing: row)["REPORT_ID"]?.string ?? "") }
      }
    }
    return ids
  }

  @Test("is checked: where the file has a row behind it that the daemon does not know, nothing is answered as stored")
  func damage() async throws {
    let store = try await rig.open()
    _ = await store.append([rig.batch(1...3)])
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/sqlite3")
    let columns = "type, created_time, context, flags, size, checksum, report_id, body"
    process.arguments = [
      rig.path, "insert into m1 (id, \(columns)) select \(2 << 48 | 1 << 40), \(columns) from m1 limit 1",
    ]
    try process.run()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    guard case .failed(let refusal) = await store.append([rig.batch(4...60)]) else {
      Issue.record("rows were stored under ids of others")
      return
    }
    #expect(refusal.retryMilliseconds != nil)
  }
}
