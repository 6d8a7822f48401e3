import PrismBase
import PrismTestSupport
import Synchronization
import Testing

@testable import PrismCollector
@testable import PrismOutputs

/// An output reads the next page while one is delivered.
@Suite("Reading ahead for an output", .timeLimit(.minutes(1)))
struct ReadAheadTests {
  /// Reports with the ids from 1 on.
  private final class Source: OutputSource {
    private let state: Mutex<(asked: [Int64], cursor: Int64, last: Int64)>

    init(last: Int64) { state = Mutex(([], 0, last)) }

    /// The ids behind which reports were read.
    var asked: [Int64] { state.withLock { $0.asked } }
    var noted: Int64 { state.withLock { $0.cursor } }
    func add(_ count: Int64) { state.withLock { $0.last += count } }

    func lead() -> Bool { true }
    func cursor() -> Int64 { noted }
    func next(after id: Int64, limit: Int) -> [StoredReport] {
      state.withLock { state in
        state.asked.append(id)
        return id < state.last ? (id + 1...min(state.last, id + Int64(limit))).map { Self.report($0) } : []
      }
    }
    func note(cursor id: Int64, refused: [RefusedReport]) { state.withLock { $0.cursor = id } }
    func deadCount() -> DeadCount { DeadCount() }
    func dead(after id: Int64, limit: Int, onlyRequeued: Bool) -> [DeadReport] { [] }
    func change(dead ids: ClosedRange<Int64>, _ change: DeadChange) -> Int { 0 }
    func close() {}

    private static func report(_ id: Int64) -> StoredReport {
      StoredReport(
        id: id, device: "d", namespace: "n", kind: "meta", type: "t", reportID: "r", receivedTime: 1, packetID: "p",
        chainIsBroken: false, meta: [])
    }
  }

  private final class Output: ReportOutput {
    let batching = ReportBatching(reportsMax: 2)
    private let taken = Mutex([Int64]())
    private let first: @Sendable () async -> Int?

    /// - Parameter first: runs while the first page is delivered; the reports that are taken before a failure, or nil.
    init(first: @escaping @Sendable () async -> Int?) { self.first = first }

    var ids: [Int64] { taken.withLock { $0 } }

    func deliver(_ reports: [StoredReport]) async throws(OutputFailure) -> [RefusedReport] {
      let count = ids.isEmpty ? await first() : nil
      taken.withLock { $0 += reports.prefix(count ?? reports.count).map(\.id) }
      if let count { throw OutputFailure("as asked", taken: count) }
      return []
    }
    func close() {}
  }

  /// - Returns: the ids behind which reports were read.
  private static func run(_ source: Source, _ output: Output, until last: Int64, advances: Bool) async -> [Int64] {
    let time = ManualTime()
    let runner = OutputRunner("x", from: source, to: output, time: time, log: StoreRig().log)
    let running = Task { await runner.run() }
    while source.noted < last, !Task.isCancelled {
      if advances { time.advance(by: .seconds(1)) }
      await Task.yield()
    }
    running.cancel()
    await running.value
    #expect(output.ids == Array(1...last))
    return source.asked
  }

  @Test("the next page is read while one is delivered, and each page once") func parallel() async {
    let source = Source(last: 10)
    let output = Output {
      while !source.asked.contains(2), !Task.isCancelled { await Task.yield() }
      return nil
    }
    #expect(await Self.run(source, output, until: 10, advances: false).prefix(5) == [0, 2, 4, 6, 8])
  }

  @Test("after a failure reports are read again", arguments: [1, 2]) func failure(taken: Int) async {
    let source = Source(last: 10)
    let output = Output {
      while !source.asked.contains(2), !Task.isCancelled { await Task.yield() }
      return taken
    }
    let asked = await Self.run(source, output, until: 10, advances: true)
    #expect(asked.prefix(3) == [0, 2, Int64(taken)])
  }

  @Test("what comes after an empty page was read ahead waits for no pause") func empty() async {
    let source = Source(last: 2)
    let output = Output {
      while !source.asked.contains(2), !Task.isCancelled { await Task.yield() }
      source.add(2)
      return nil
    }
    _ = await Self.run(source, output, until: 4, advances: false)
  }
}
