import PrismAdmission
import PrismProtocol
import PrismTestSupport
import Testing

@Suite("No user crowds out another")
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
    entries.map { String(decoding: $0.batches[0].arena.prefix { $0 != 0x20 }, as: UTF8.self) }
  }

  @Test("a commit takes from users in turn, and of each user from its connections in turn")
  func turns() {
    var composer = CommitComposer()
    for index in 1...4 { composer.add(batch("a\(index)"), connection: 1, user: 100) }
    for index in 1...2 { composer.add(batch("b\(index)"), connection: 2, user: 100) }
    composer.add(batch("c1"), connection: 3, user: 200)
    composer.add(batch("d1"), connection: 4, user: 300)
    #expect(names(composer.take(rowsMax: 20, bytesMax: .max)) == ["a1", "c1", "d1", "b1", "a2"])
    #expect(names(composer.take(rowsMax: 100, bytesMax: .max)) == ["b2", "a3", "a4"])
    #expect(composer.isEmpty)
  }

  @Test("one batch is taken however large it is; more only while they fit")
  func limits() {
    var composer = CommitComposer()
    composer.add(batch("rows", rows: 9), connection: 1, user: 1)
    composer.add(batch("bytes", bytes: 9000), connection: 2, user: 2)
    composer.add(batch("small"), connection: 3, user: 3)
    for name in ["small", "rows", "bytes"] { #expect(names(composer.take(rowsMax: 5, bytesMax: 5000)) == [name]) }
    #expect(composer.take(rowsMax: 5, bytesMax: 5000).isEmpty)
  }

  private func rows(_ entries: [CommitComposer.Entry]) -> Int {
    entries.reduce(0) { $0 + $1.batches.reduce(0) { $0 + $1.rows.count } }
  }

  @Test(
    "a commit takes at most 1,000 rows while several connections are open; else 4,000",
    arguments: [(true, 1000), (false, 4000)])
  func sharedCommits(hasContention: Bool, max: Int) {
    var composer = CommitComposer()
    for index in 0..<60 { composer.add(batch("\(index)", rows: 80), connection: 1, user: 1) }
    let taken = rows(composer.takeNext(hasContention: hasContention))
    #expect((max - 200...max).contains(taken), "\(taken)")
  }

  @Test("a commit takes one full batch while several connections are open, and small ones beside it; else many")
  func oneLargeBatch() {
    for (hasContention, expected) in [(true, 256), (false, 768)] {
      var composer = CommitComposer()
      for connection in 1...3 { composer.add(batch("large", rows: 256), connection: connection, user: 1) }
      #expect(rows(composer.takeNext(hasContention: hasContention)) == expected)
      for connection in 4...7 { composer.add(batch("small", rows: 60), connection: connection, user: 1) }
      #expect(rows(composer.takeNext(hasContention: hasContention)) == 240)
      #expect(rows(composer.takeNext(hasContention: hasContention)) == (hasContention ? 256 : 0))
    }
  }

  @Test("groups of inputs share a commit while several connections are open: each of their clients waits")
  func sharedGroups() {
    var composer = CommitComposer()
    for connection in 1...8 {
      composer.add([batch("group", rows: 150)], note: nil, connection: connection, user: 1)
    }
    #expect([6, 2].map { $0 * 150 } == (1...2).map { _ in rows(composer.takeNext(hasContention: true)) })
  }

  @Test("a group of an input is committed whole; with more than 1,000 rows it has the commit for itself")
  func largeGroup() {
    var composer = CommitComposer()
    composer.add(Array(repeating: batch("group", rows: 512), count: 5), note: nil, connection: 1, user: 1)
    for index in 0..<8 { composer.add(batch("small\(index)"), connection: 2, user: 2) }
    #expect(names(composer.takeNext(hasContention: true)) == (0..<8).map { "small\($0)" })
    composer.add(batch("next"), connection: 2, user: 2)
    let taken = [composer.takeNext(hasContention: true), composer.takeNext(hasContention: true)]
    #expect(taken.map { names($0) }.contains(["group"]) && taken.map { rows($0) }.contains(2560))
  }

  @Test("small batches beside a large one have a commit of their own, every other time", arguments: [UInt32(1), 2])
  func smallCommits(userOfSmall: UInt32) {
    var composer = CommitComposer()
    for index in 1...4 { composer.add(batch("large\(index)", rows: 500), connection: 1, user: 1) }
    for index in 1...3 {
      for connection in 2...3 { composer.add(batch("small"), connection: connection, user: userOfSmall) }
      #expect(names(composer.takeNext(hasContention: true)) == ["small", "small"])
      composer.add(batch("small"), connection: 2, user: userOfSmall)
      #expect(names(composer.takeNext(hasContention: true)) == ["small", "large\(index)"])
    }
  }

  @Test("a user with one report is in the next commit, however many batches of other users wait")
  func oneReport() { expectNextCommit { UInt32($0) } }

  /// - Parameter user: of a connection: 1 to 8 flood, 9 has one report.
  private func expectNextCommit(user: (_ connection: Int) -> UInt32) {
    var composer = CommitComposer()
    for connection in 1...8 {
      for index in 1...4 {
        composer.add(batch("\(connection).\(index)", rows: 512), connection: connection, user: user(connection))
      }
    }
    for round in 1...4 {
      _ = composer.take(rowsMax: 1000, bytesMax: .max)
      composer.add(batch("good\(round)"), connection: 9, user: user(9))
      #expect(names(composer.take(rowsMax: 1000, bytesMax: .max)).contains("good\(round)"))
    }
  }

  @Test("a user with small batches one after the other does not keep a large one waiting for ever")
  func largeBatch() { #expect(commitsUntilLarge(userOfSmall: 2) < 200) }

  /// Commits until a large batch of user 1 is taken, beside small ones one after the other.
  private func commitsUntilLarge(userOfSmall: UInt32) -> Int {
    var composer = CommitComposer()
    composer.add(batch("large", rows: 512), connection: 1, user: 1)
    var commits = 0
    repeat {
      composer.add(batch("small"), connection: 2, user: userOfSmall)
      commits += 1
    } while names(composer.take(rowsMax: 5, bytesMax: .max)) != ["large"] && commits < 1000
    return commits
  }

  @Test("a connection with one report is in the next commit, however many batches of its user's others wait")
  func oneReportOfConnection() { expectNextCommit { _ in 1 } }

  @Test("small batches of one connection do not keep a large one of the same user waiting for ever")
  func largeBatchOfConnection() { #expect((50..<200).contains(commitsUntilLarge(userOfSmall: 1))) }

  @Test("each connection's order is kept while connections come and go")
  func order() {
    var (composer, next, seen): (CommitComposer, [Int], [Int: Int]) = (.init(), [0, 0, 0], [:])
    for round in 0..<500 {
      let connection = round * 7 % 3
      composer.add(batch("\(next[connection])"), connection: connection, user: UInt32(connection % 2))
      next[connection] += 1
      guard round % 3 == 0 else { continue }
      for entry in composer.take(rowsMax: 8, bytesMax: .max) {
        #expect(names([entry]) == ["\(seen[entry.connection, default: 0])"])
        seen[entry.connection, default: 0] += 1
      }
    }
    #expect(seen.values.reduce(0, +) >= 300)
  }

  /// 64 turns fit into it, 16 into a user's share.
  private static let whole = 64 * turn
  private static let turn = PendingBudget.turnBytes

  private func budget(_ connections: [Int: UInt32]) -> PendingBudget {
    var budget = PendingBudget(bytesMax: Self.whole)
    for (connection, user) in connections { budget.open(connection, user: user) }
    return budget
  }

  @Test("a connection works until it holds half of its user's share, and again when that is committed")
  func connectionLimit() {
    var budget = budget([1: 1, 2: 1])
    budget.set(1, bytes: 8 * Self.turn, batchBytes: 8 * Self.turn)
    #expect(budget.mayWork(1) == false)
    #expect(budget.mayWork(2) == true)
    budget.set(1, bytes: 0, batchBytes: 0)
    #expect(budget.mayWork(1) == true)
  }

  @Test("15 users that hold all they can leave room for one more, and no user holds more than a quarter")
  func userShare() {
    let users = 1...16
    var budget = budget(Dictionary(uniqueKeysWithValues: (1...64).map { ($0, UInt32($0 / 4)) }))
    var held = Array(repeating: 0, count: 65)
    for _ in 0..<20 {
      for connection in 1...64 where connection / 4 < users.upperBound && budget.mayWork(connection) {
        held[connection] += Self.turn / 2
        budget.set(connection, bytes: held[connection], batchBytes: Self.turn / 4)
      }
    }
    for user in users { #expect(held.indices.filter { $0 / 4 == user }.reduce(0) { $0 + held[$1] } <= Self.whole / 4) }
    #expect(budget.bytes <= Self.whole)
    #expect(budget.mayWork(64) == true, "the last user holds nothing yet")
    for connection in 1...63 { budget.close(connection) }
    budget.close(64)
    #expect(budget.bytes == 0)
  }

  @Test(
    "while others hold some, a user holds a sixteenth; one that holds nothing works beside 16 that hold all they can",
    arguments: [1, 2, 16, 20])
  func sixteenth(users: Int) {
    var budget = budget(Dictionary(uniqueKeysWithValues: (1...users * 8 + 8).map { ($0, UInt32(($0 - 1) / 8)) }))
    var held = Array(repeating: 0, count: users * 8 + 1)
    for _ in 0..<20 {
      for connection in held.indices.dropFirst() where budget.mayWork(connection) {
        held[connection] += Self.turn / 2
        budget.set(connection, bytes: held[connection], batchBytes: 0)
      }
    }
    let bytes = (0..<users).map { user in held[(user * 8 + 1)...(user * 8 + 8)].reduce(0, +) }
    let most = users == 1 ? Self.whole / 4 : Self.whole / 16 + Self.turn
    #expect(bytes.allSatisfy { (Self.turn / 2...most).contains($0) }, "\(bytes)")
    #expect(budget.bytes <= Self.whole)
    for connection in users * 8 + 1...users * 8 + 4 {
      #expect(budget.mayWork(connection) == true, "a user that holds nothing")
      budget.set(connection, bytes: 1000, batchBytes: 1000)
    }
  }

  @Test("beginnings of requests that fill a share don't wait for ever: one may go on until it is whole")
  func progress() {
    var budget = budget(Dictionary(uniqueKeysWithValues: (1...16).map { ($0, 1) }))
    for connection in 1...15 { budget.set(connection, bytes: Self.turn, batchBytes: 0) }
    #expect(budget.mayWork(2) == true)
    #expect(budget.mayWork(1) == false)
    budget.set(2, bytes: Self.turn, batchBytes: Self.turn)
    for connection in 1...16 { #expect(budget.mayWork(connection) == false, "its commit comes first") }
    budget.set(2, bytes: 0, batchBytes: 0)
    #expect(budget.mayWork(1) == true)
    #expect(budget.bytes <= budget.userBytesMax)
  }

  @Test("a large request is begun when there is memory for all of it, and then nothing keeps it from its end")
  func largeRequest() {
    var budget = budget([1: 1, 2: 1, 3: 2])
    let large = 8 * Self.turn
    #expect(budget.mayWork(1, requestBytes: large) == true)
    budget.set(1, bytes: 100, batchBytes: 0, requestBytes: large)
    #expect(budget.mayWork(2, requestBytes: large) == false, "the user's share has no room for two")
    #expect(budget.mayWork(3, requestBytes: large) == true, "another's has")
    for bytes in stride(from: 0, through: large, by: Self.turn) {
      #expect(budget.mayWork(1, requestBytes: large) == true)
      budget.set(1, bytes: bytes, batchBytes: 0, requestBytes: large)
    }
    budget.set(1, bytes: 0, batchBytes: 0)
    #expect(budget.mayWork(2, requestBytes: large) == true)
  }

  @Test("large requests whose beginnings fill a share don't wait for ever: one after the other goes on")
  func largeRequestsBegun() {
    var budget = budget(Dictionary(uniqueKeysWithValues: (1...15).map { ($0, 1) }))
    let large = 8 * Self.turn
    for connection in 1...15 { budget.set(connection, bytes: Self.turn, batchBytes: 0, requestBytes: large) }
    for next in 1...15 {
      #expect(budget.mayWork(next, requestBytes: large) == true, "\(next)")
      for other in 1...15 where other != next { #expect(budget.mayWork(other, requestBytes: large) == false) }
      budget.set(next, bytes: 2 * Self.turn, batchBytes: 0, requestBytes: large)
      #expect(budget.mayWork(next, requestBytes: large + Self.turn) == true, "it turns out to be larger")
      #expect(budget.bytes <= budget.userBytesMax + large + 2 * Self.turn)
      budget.set(next, bytes: large, batchBytes: large)
      for other in 1...15 where other != next {
        #expect(budget.mayWork(other, requestBytes: large) == false, "its commit comes first")
      }
      budget.set(next, bytes: 0, batchBytes: 0)
      budget.close(next)
    }
    #expect(budget.bytes == 0)
  }

  @Test("a random crowd never holds more than it may, and leaves nothing behind")
  func crowd() {
    let seed = SeededRandom.announcedSeed("crowd")
    var random = SeededRandom(seed: seed)
    var budget = budget(Dictionary(uniqueKeysWithValues: (1...60).map { ($0, UInt32($0 % 6)) }))
    var held = Array(repeating: 0, count: 61)
    for _ in 0..<20_000 {
      let connection = Int.random(in: 1...60, using: &random)
      let request = connection.isMultiple(of: 5) ? 8 * Self.turn : 0
      if Int.random(in: 0..<3, using: &random) == 0 {
        held[connection] = 0
      } else if budget.mayWork(connection, requestBytes: request) {
        held[connection] += Int.random(in: 0...Self.turn, using: &random)
      }
      let rest = held[connection] > 0 ? request : 0
      budget.set(connection, bytes: held[connection], batchBytes: 0, requestBytes: rest)
      guard budget.bytes <= Self.whole else {
        Issue.record("seed \(seed)")
        return
      }
    }
    for connection in 1...60 { budget.close(connection) }
    #expect(budget.bytes == 0)
  }

  @Test("the last quarter of the connections is for users with fewer than 8")
  func places() {
    let places = ConnectionPlaces(max: 100, maxPerUser: 60)
    #expect(places.refusal(open: 74, held: 59) == nil)
    #expect(places.refusal(open: 74, held: 60) == .user)
    #expect(places.refusal(open: 75, held: 8) == .reserved)
    #expect(places.refusal(open: 99, held: 7) == nil)
    #expect(places.refusal(open: 100, held: 0) == .connections)
  }
}
