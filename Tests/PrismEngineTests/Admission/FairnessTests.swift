import PrismEngine
import PrismProtocol
import Testing

@Suite("Nobody crowds out another")
struct FairnessTests {
  @Test("a commit takes from users in turn, and of each user from its connections in turn")
  func turns() {
    var composer = CommitComposer<String>()
    for index in 1...4 { composer.add("a\(index)", rows: 1, bytes: 1, connection: 1, user: 100) }
    for index in 1...2 { composer.add("b\(index)", rows: 1, bytes: 1, connection: 2, user: 100) }
    composer.add("c1", rows: 1, bytes: 1, connection: 3, user: 200)
    composer.add("d1", rows: 1, bytes: 1, connection: 4, user: 300)
    #expect(composer.take(rowsMax: 5, bytesMax: 100).map(\.batch) == ["a1", "c1", "d1", "b1", "a2"])
    #expect(composer.take(rowsMax: 100, bytesMax: 100).map(\.batch) == ["b2", "a3", "a4"])
    #expect(composer.isEmpty)
  }

  @Test("one batch is taken however large it is; more only while they fit")
  func limits() {
    var composer = CommitComposer<Int>()
    composer.add(1, rows: 9, bytes: 1, connection: 1, user: 1)
    composer.add(2, rows: 1, bytes: 9, connection: 2, user: 2)
    composer.add(3, rows: 1, bytes: 1, connection: 3, user: 3)
    #expect(composer.take(rowsMax: 5, bytesMax: 5).map(\.batch) == [1])
    #expect(composer.take(rowsMax: 5, bytesMax: 5).map(\.batch) == [2])
    #expect(composer.take(rowsMax: 5, bytesMax: 5).map(\.batch) == [3])
    #expect(composer.take(rowsMax: 5, bytesMax: 5).isEmpty)
  }

  @Test("each connection's order is kept, whatever comes and goes")
  func order() {
    var (composer, next, seen): (CommitComposer<Int>, [Int], [Int: Int]) = (.init(), [0, 0, 0], [:])
    for round in 0..<500 {
      let connection = round * 7 % 3
      composer.add(next[connection], rows: 1, bytes: 1, connection: connection, user: UInt32(connection % 2))
      next[connection] += 1
      guard round % 3 == 0 else { continue }
      for entry in composer.take(rowsMax: 2, bytesMax: 100) {
        #expect(entry.batch == seen[entry.connection, default: 0])
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
