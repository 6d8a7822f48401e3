import PrismProtocol
import Testing

@testable import PrismStore

@Suite("Eviction of one user's rows does not read those of others")
struct UserSharesTests {
  private static let (a, b, c) = (RowOwner(userID: 1), RowOwner(userID: 2), RowOwner(userID: 3))

  /// Rows 1 to 99 are a's, 100 to 199 b's, 300 to 399 c's, 400 to 404 a's, and 405 to 499 b's.
  private static func shares() -> UserShares {
    var shares = UserShares()
    shares.add(0, to: a, 1..<60)
    shares.add(0, to: a, 60..<100)
    shares.add(0, to: b, 100..<200)
    shares.add(0, to: c, 300..<400)
    shares.add(0, to: a, 400..<405)
    shares.add(0, to: b, 405..<500)
    return shares
  }

  @Test(
    "the walk goes on before the first row that may be of a user who gives way",
    arguments: [
      (1, [b], 99), (99, [b], nil), (1, [c], 299), (150, [a], 399), (100, [a, c], 299), (380, [b], 404),
      (390, [b], nil),
      (150, [b], nil), (405, [a], 499), (250, [a], nil), (500, [a], nil),
    ] as [(Int64, [RowOwner], Int64?)])
  func skipped(after: Int64, owners: [RowOwner], last: Int64?) {
    let excess = Dictionary(uniqueKeysWithValues: owners.map { ($0, 1) })
    let id = RowID(priority: .rest, sequence: after).value
    let found = Self.shares().lastOfOthers(than: excess, after: id, .rest, .meta)
    #expect(found == last.map { RowID(priority: .rest, sequence: $0).value })
  }

  @Test("nothing is known of rows before many others, or after rows came back between them")
  func forgotten() {
    var shares = Self.shares()
    let id = RowID(priority: .rest, sequence: 1).value
    for number in 1..<1024 {
      shares.add(0, to: number % 2 == 0 ? Self.a : Self.b, Int64(500 * number)..<Int64(500 * number + 90))
    }
    #expect(shares.lastOfOthers(than: [Self.c: 1], after: id, .rest, .meta) == nil)
    let late = RowID(priority: .rest, sequence: 500 * 1000).value
    #expect(shares.lastOfOthers(than: [Self.c: 1], after: late, .rest, .meta) != nil)
    shares.forgetRuns()
    #expect(shares.lastOfOthers(than: [Self.c: 1], after: late, .rest, .meta) == nil)
  }
}
