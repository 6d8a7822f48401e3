import PrismBase
import PrismProtocol
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismCollector

@Suite("Live tails share their polls")
struct TailPollsTests {
  /// Counts the polls of the store.
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

  private let time = ManualTime()

  private func filter(_ type: String?) -> ReportFilter {
    var filter = ReportFilter(scope: .everything)
    filter.type = type
    return filter
  }

  @Test("thirty tails with one filter read once, another filter reads for itself, and a later poll reads on")
  func shares() async throws {
    let (polls, reads) = (TailPolls(time: time), Reads())
    let ask = { @Sendable (type: String?) async throws in
      try await polls.poll(filter(type)) { .success(TailPolls.Poll(newest: $0.newest * 100 + reads.next())) }.newest
    }
    let found = try await withThrowingTaskGroup(of: Int64.self) { group in
      for _ in 0..<30 { group.addTask { try await ask(nil) } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(found == [Int64](repeating: 1, count: 30) && reads.total == 1)
    #expect(try await ask("x") == 2)
    time.advance(by: TailPolls.interval)
    #expect(try await ask(nil) == 103, "from the poll before")
    #expect(reads.total == 3)
    time.advance(by: .seconds(60))
    #expect(try await ask("x") == 4, "forgotten")
  }

  @Test("polls take a tenth of the time: after one that took long, every filter waits nine times as long")
  func rests() async throws {
    let (polls, reads, time) = (TailPolls(time: time), Reads(), time)
    let ask = { (type: String, lasts: Duration) async throws in
      try await polls.poll(filter(type)) { _ in
        time.advance(by: lasts)
        return .success(.init(newest: reads.next()))
      }.newest
    }
    _ = try await ask("cheap", .zero)
    _ = try await ask("costly", .milliseconds(500))
    time.advance(by: .milliseconds(4499))
    #expect(try await ask("cheap", .zero) == 1)
    #expect(try await ask("costly", .zero) == 2)
    time.advance(by: .milliseconds(1))
    #expect(try await ask("cheap", .zero) == 3)
    #expect(try await ask("costly", .seconds(100)) == 4)
    time.advance(by: .seconds(10))
    #expect(try await ask("cheap", .zero) == 5, "no rest is longer than 10 s")
  }

  @Test("past the most filters the oldest poll is forgotten") func bounded() async throws {
    let (polls, reads) = (TailPolls(time: time), Reads())
    func ask(_ number: Int) async throws -> Int64 {
      time.advance(by: .milliseconds(1))
      return try await polls.poll(filter("t\(number)")) { _ in .success(.init(newest: reads.next())) }.newest
    }
    for number in 0...TailPolls.filtersMax { _ = try await ask(number) }
    #expect(try await ask(1) == 2, "it is kept")
    #expect(try await ask(0) == Int64(TailPolls.filtersMax + 2), "it was the oldest")
  }

  @Test("a poll that failed is no poll: the next one reads from the one before it")
  func failures() async throws {
    let polls = TailPolls(time: time)
    _ = try await polls.poll(ReportFilter(scope: .everything)) { _ in .success(.init(newest: 7)) }
    time.advance(by: TailPolls.interval)
    await #expect(throws: CollectorRefusal.self) {
      try await polls.poll(ReportFilter(scope: .everything)) { _ in .failure(.unreadable) }
    }
    time.advance(by: TailPolls.interval)
    let poll = try await polls.poll(ReportFilter(scope: .everything)) { .success(.init(newest: $0.newest + 1)) }
    #expect(poll.newest == 8)
  }
}
