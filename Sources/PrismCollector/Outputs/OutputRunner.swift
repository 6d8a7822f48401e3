import PrismBase
import PrismProtocol

/// Hands what is stored on to one output: in the order of ids, at least once. A failure delays this output and nothing else.
actor OutputRunner {
  struct Figures: Sendable, Equatable {
    var delivered = 0
    /// Refused by the other side for good.
    var refused = 0
    var failures = 0
    /// When the oldest report was received that is not handed on yet, milliseconds since 1970; nil if every report is.
    var waitingSince: Int64?
    var isLeading = false
  }

  private enum Round {
    case delivered, idle, follows
    case failed(String)
  }

  private static let pageReports = 1000
  private static let pauses: (idle: Duration, follows: Duration, longest: Duration) = (
    .milliseconds(250), .seconds(2), .seconds(30)
  )

  let name: String
  private let source: any OutputSource
  private let output: any ReportOutput
  private let time: any TimeSource
  private let log: Logger
  private(set) var figures = Figures()
  /// nil: it is read before the next page.
  private var cursor: Int64?

  init(
    _ name: String, from source: any OutputSource, to output: any ReportOutput, time: any TimeSource, log: Logger
  ) {
    (self.name, self.source, self.output, self.time, self.log) = (name, source, output, time, log)
  }

  /// Runs until its task is cancelled.
  func run() async {
    var pause: Duration = .milliseconds(100)
    while !Task.isCancelled {
      let wait: Duration
      switch await round() {
      case .delivered:
        pause = .milliseconds(100)
        continue
      case .idle: wait = Self.pauses.idle
      case .follows: wait = Self.pauses.follows
      case .failed(let cause):
        figures.failures += 1
        log.fault("collector.output.\(name)", "an output takes no reports", ["output": name, "cause": cause])
        wait = pause
        pause = min(Self.pauses.longest, pause * 2)
      }
      do { try await time.sleep(for: wait) } catch { break }  // the collector stops
    }
    await output.close()
    await source.close()
  }

  private func round() async -> Round {
    do throws(StoreFailure) {
      figures.isLeading = try await source.lead()
      guard figures.isLeading else {
        (cursor, figures.waitingSince) = (nil, nil)
        return .follows
      }
      let from = if let cursor { cursor } else { try await source.cursor() }
      cursor = from
      let page = try await source.next(after: from, limit: Self.pageReports)
      figures.waitingSince = page.first?.receivedTime
      guard let last = page.last else { return .idle }
      do throws(OutputFailure) { try await deliver(page) } catch {
        try await noteTaken(error, of: page)
        return .failed(error.description)
      }
      try await source.note(cursor: last.id)
      cursor = last.id
      return .delivered
    } catch {
      cursor = nil
      return .failed("\(error)")
    }
  }

  /// Notes the reports that were taken before a failure, so that they do not come again, not after a stop either.
  private func noteTaken(_ failure: OutputFailure, of page: [StoredReport]) async throws(StoreFailure) {
    figures.refused += failure.refused
    guard failure.taken > 0 else { return }
    let last = page[failure.taken - 1].id
    figures.delivered += failure.taken - failure.refused
    try await source.note(cursor: last)
    cursor = last
  }

  private func deliver(_ page: [StoredReport]) async throws(OutputFailure) {
    let refused = try await output.deliver(page)
    figures.refused += refused
    figures.delivered += page.count - refused
    log.faultEnded("collector.output.\(name)", "an output takes reports again", ["output": name])
  }
}
