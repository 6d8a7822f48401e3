import PrismEngine
import PrismProtocol
import Testing

@Suite("Nobody crowds out another")
struct FairnessTests {
  /// A batch whose arena says which one it is.
  private func batch(_ name: String, rows: Int = 1, bytes: Int = 0) -> ReportBatch {
    var batch = ReportBatch(
      namespace: .prism, userID: 1000, context: CommonContext(members: []),
      quota: StoreQuota(bytesMax: .max, evictsOldest: false))
    batch.arena = Array(name.utf8) + [UInt8](repeating: 0x20, count: bytes)
    batch.rows = Array(repeating: .init(type: 0, createdTime: 0, body: 0..<1, metaBytes: 1), count: rows)
    return batch
  }

  private func names(_ entries: [CommitComposer.Entry]) -> [String] {
    entries.map { String(decoding: $0.batch.arena.prefix { $0 != 0x20 }, as: UTF8.self) }
  }

  @Test("a commit takes from users in turn, and of each user from its connections in turn")
  func turns() {
    var composer = CommitComposer()
    for index in 1...4 { composer.add(batch("a\(index)"), connection: 1, user: 100) }
    for index in 1...2 { composer.add(batch("b\(index)"), connection: 2, user: 100) }
    composer.add(batch("c1"), connection: 3, user: 200)
    composer.add(batch("d1"), connection: 4, user: 300)
    #expect(names(composer.take(rowsMax: 5, bytesMax: .max)) == ["a1", "c1", "d1", "b1", "a2"])
    #expect(names(composer.take(rowsMax: 100, bytesMax: .max)) == ["b2", "a3", "a4"])
    #expect(composer.isEmpty)
  }

  @Test("one batch is taken however large it is; more only while they fit")
  func limits() {
    var composer = CommitComposer()
    composer.add(batch("rows", rows: 9), connection: 1, user: 1)
    composer.add(batch("bytes", bytes: 9000), connection: 2, user: 2)
    composer.add(batch("small"), connection: 3, user: 3)
    for name in ["rows", "bytes", "small"] { #expect(names(composer.take(rowsMax: 5, bytesMax: 5000)) == [name]) }
    #expect(composer.take(rowsMax: 5, bytesMax: 5000).isEmpty)
  }

  @Test("each connection's order is kept, whatever comes and goes")
  func order() {
    var (composer, next, seen): (CommitComposer, [Int], [Int: Int]) = (.init(), [0, 0, 0], [:])
    for round in 0..<500 {
      let connection = round * 7 % 3
      composer.add(batch("\(next[connection])"), connection: connection, user: UInt32(connection % 2))
      next[connection] += 1
      guard round % 3 == 0 else { continue }
      for entry in composer.take(rowsMax: 2, bytesMax: .max) {
        #expect(names([entry]) == ["\(seen[entry.connection, default: 0])"])
        seen[entry.connection, default: 0] += 1
      }
    }
    #expect(seen.values.reduce(0, +) >= 300)
  }

  @Test("a connection reads until it holds its limit, and again when that is committed")
  func connectionLimit() {
    var budget = PendingBudget(connectionBytesMax: 100, bytesMax: 1000)
    budget.open(1, user: 1)
    budget.set(1, partialBytes: 0, batchBytes: 100)
    #expect(budget.mayRead(1) == false)
    budget.set(1, partialBytes: 0, batchBytes: 99)
    #expect(budget.mayRead(1) == true)
  }

  @Test("a user may hold as much as is still free, so that there is always room for another")
  func userShare() {
    var budget = PendingBudget(connectionBytesMax: 1000, bytesMax: 1000)
    for (connection, user) in [(1, 1), (2, 1), (3, 2)] { budget.open(connection, user: UInt32(user)) }
    budget.set(1, partialBytes: 0, batchBytes: 500)
    #expect(budget.mayRead(2) == false, "the other connection of the same user waits too")
    #expect(budget.mayRead(3) == true)
    budget.set(3, partialBytes: 0, batchBytes: 250)
    #expect(budget.mayRead(3) == false)
    budget.close(1)
    #expect(budget.mayRead(3) == true)
    #expect(budget.bytes == 250)
  }

  @Test("beginnings of requests that fill a share don't wait for ever: one may go on until it is whole")
  func progress() {
    var budget = PendingBudget(connectionBytesMax: 1000, bytesMax: 1000)
    for connection in 1...3 {
      budget.open(connection, user: 1)
      budget.set(connection, partialBytes: 200, batchBytes: 0)
    }
    #expect(budget.mayRead(2) == true)
    #expect(budget.mayRead(1) == false)
    #expect(budget.mayRead(3) == false)
    budget.set(2, partialBytes: 5000, batchBytes: 0)
    #expect(budget.mayRead(2) == true, "a payload may be larger than the share")
    budget.set(2, partialBytes: 0, batchBytes: 5000)
    for connection in 1...3 { #expect(budget.mayRead(connection) == false, "its commit comes first") }
    budget.set(2, partialBytes: 0, batchBytes: 0)
    #expect(budget.mayRead(1) == true)
  }
}
