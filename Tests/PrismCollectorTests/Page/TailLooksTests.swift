import PrismBase
import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismCollector

@Suite("Live tails share their looks")
struct TailLooksTests {
  /// Counts the looks at the store.
  private final class Reads: Sendable {
    private let count = Mutex(0)
    var total: Int { count.withLock { $0 } }
    func next() -> Int64 {
      count.withLock { count in
        count += 1
        return Int64(count)
      }
    }
  }

  @Test("thirty tails with one filter read once, another filter reads for itself, and a later look reads on")
  func shares() async throws {
    let (looks, reads) = (TailLooks(), Reads())
    let ask = { @Sendable (type: String?, now: Duration) async throws in
      var filter = ReportFilter()
      filter.type = type
      return try await looks.look(filter, now: now) { before in
        .success(TailLooks.Look(newest: before.newest * 100 + reads.next()))
      }
    }
    let found = try await withThrowingTaskGroup(of: Int64.self) { group in
      for _ in 0..<30 { group.addTask { try await ask(nil, .seconds(1)).newest } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(found == [Int64](repeating: 1, count: 30) && reads.total == 1)
    #expect(try await ask("x", .seconds(1)).newest == 2)
    #expect(try await ask(nil, .seconds(1) + TailLooks.interval).newest == 103, "from the look before")
    #expect(reads.total == 3)
    #expect(try await ask("x", .seconds(60)).newest == 4, "forgotten")
  }

  @Test("past the most filters the oldest look is forgotten") func bounded() async throws {
    let (looks, reads) = (TailLooks(), Reads())
    func ask(_ number: Int) async throws -> Int64 {
      var filter = ReportFilter()
      filter.type = "t\(number)"
      return try await looks.look(filter, now: .milliseconds(number)) { _ in .success(.init(newest: reads.next())) }
        .newest
    }
    for number in 0...TailLooks.filtersMax { _ = try await ask(number) }
    #expect(try await ask(1) == 2, "it is kept")
    #expect(try await ask(0) == Int64(TailLooks.filtersMax + 2), "it was the oldest")
  }

  @Test("a look that failed is no look: the next one reads from the one before it")
  func failures() async throws {
    let looks = TailLooks()
    _ = try await looks.look(ReportFilter(), now: .zero) { _ in .success(.init(newest: 7)) }
    await #expect(throws: CollectorRefusal.self) {
      try await looks.look(ReportFilter(), now: .seconds(1)) { _ in .failure(.unreadable) }
    }
    let look = try await looks.look(ReportFilter(), now: .seconds(2)) { .success(.init(newest: $0.newest + 1)) }
    #expect(look.newest == 8)
  }
}
