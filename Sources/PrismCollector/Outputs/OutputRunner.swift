import PrismBase
import PrismOutputs

/// Hands what is stored on to one output: in the order of ids, at least once. A failure delays this output and nothing else.
actor OutputRunner {
  struct Figures: Sendable, Equatable {
    var delivered = 0
    /// Refused by the other side for good.
    var refused = 0
    var dead = DeadCount()
    var failures = 0
    /// Why it takes nothing now; nil: it takes reports.
    var holds: String?
    /// When the oldest report was received that is not handed on yet, milliseconds since 1970; nil if every report is.
    var waitingSince: Int64?
    var isLeading = false

    /// For `/readyz`; nil: there is nothing to mend.
    func warning(_ name: String) -> String? { holds.map { "the output \(name) takes no reports: \($0)" } }
  }

  private enum Round {
    case delivered, idle, follows
    case failed(String)
  }

  /// With as many dead letters it holds, so that no report is skipped that could not be kept as one.
  static let deadMax = 100_000
  /// How often it looks for dead letters that an operator hands on again.
  private static let requeuedEvery: Duration = .seconds(5)
  /// How often it tells other replicas that it leads while the other side works.
  private static let beatEvery: Duration = .seconds(3)
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
  /// Of the reports behind this one, which are read while those before are delivered. Not used after a failure.
  private var ahead: (after: Int64, page: Task<[StoredReport]?, Never>)?
  /// In uptime: since when reports wait for more to go with them; nil: there are no such.
  private var patientSince: Duration?
  /// In uptime; nil: not yet.
  private var lookedForRequeued: Duration?
  /// Why the dead letters of an operator were not taken at the last attempt.
  private var requeuedHolds: String?

  init(_ name: String, from source: any OutputSource, to output: any ReportOutput, time: any TimeSource, log: Logger) {
    (self.name, self.source, self.output, self.time, self.log) = (name, source, output, time, log)
  }

  static func figures(of runners: [OutputRunner]) async -> [(name: String, figures: Figures)] {
    var figures: [(name: String, figures: Figures)] = []
    for runner in runners { figures.append((runner.name, await runner.figures)) }
    return figures
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
      case .follows:
        // Another replica hands on: the cause here is over.
        figures.holds = nil
        wait = Self.pauses.follows
      case .failed(let cause):
        ahead = nil
        figures.failures += 1
        if figures.holds != cause { log.warning("an output takes no reports", ["output": name, "cause": cause]) }
        figures.holds = cause
        wait = pause
        pause = min(Self.pauses.longest, pause * 2)
      }
      do { try await time.sleep(for: wait) } catch { break }  // the collector stops
    }
    await output.close()
    _ = await ahead?.page.value
    await source.close()
  }

  private func round() async -> Round {
    do throws(StoreFailure) {
      figures.isLeading = try await source.lead()
      guard figures.isLeading else {
        (cursor, ahead, figures.waitingSince) = (nil, nil, nil)
        return .follows
      }
      try await handOnRequeued()
      guard figures.dead.letters < Self.deadMax else { return .failed(Self.tooManyDead) }
      let from = if let cursor { cursor } else { try await source.cursor() }
      cursor = from
      let page = try await page(after: from)
      figures.waitingSince = page.first?.receivedTime
      guard !page.isEmpty else {
        await output.rest()
        if let requeuedHolds { return .failed(requeuedHolds) }
        takesReports()
        return .idle
      }
      guard isDue(page) else { return .idle }
      if let last = page.last { readAhead(after: last.id) }
      let refused: [RefusedReport]
      do throws(OutputFailure) { refused = try await deliver(page) } catch {
        // Reports that were taken before a failure do not come again, not after a stop either.
        try await note(page[..<error.taken], refused: error.refused)
        return .failed(error.description)
      }
      try await note(page[...], refused: refused)
      takesReports()
      return .delivered
    } catch {
      cursor = nil
      return .failed("\(error)")
    }
  }

  private func readAhead(after id: Int64) {
    let (source, limit) = (source, output.batching.reportsMax)
    ahead = (id, Task { try? await source.next(after: id, limit: limit) })
  }

  /// Reports may have come since an empty page was read ahead, and a fault may be over.
  private func page(after id: Int64) async throws(StoreFailure) -> [StoredReport] {
    if let ahead {
      self.ahead = nil
      if let page = await ahead.page.value, ahead.after == id, !page.isEmpty { return page }
    }
    return try await source.next(after: id, limit: output.batching.reportsMax)
  }

  private func isDue(_ page: [StoredReport]) -> Bool {
    let since = patientSince ?? time.uptime
    let isDue = page.count >= output.batching.reportsMax || time.uptime - since >= output.batching.wait
    patientSince = isDue ? nil : since
    return isDue
  }

  private static let tooManyDead =
    "it has \(deadMax) dead letters, the most that are kept; hand them on again or drop them (docs/collector.md, Outputs)"

  private func takesReports() {
    guard figures.holds != nil else { return }
    figures.holds = nil
    log.info("an output takes reports again", ["output": name])
  }

  private func note(_ taken: ArraySlice<StoredReport>, refused: [RefusedReport]) async throws(StoreFailure) {
    guard let last = taken.last else { return }
    try await source.note(cursor: last.id, refused: refused)
    cursor = last.id
    figures.delivered += taken.count - refused.count { !$0.isDelivered }
    noteDead(refused)
  }

  private func noteDead(_ refused: [RefusedReport]) {
    guard let first = refused.first else { return }
    let count = refused.count { !$0.isDelivered }
    figures.refused += count
    figures.dead.letters += refused.count
    figures.dead.refused += count
    log.warning(
      "an output refuses reports for good: they are kept as its dead letters",
      ["output": name, "reports": String(count), "first": String(first.id), "cause": first.cause])
  }

  private func deliver(_ page: [StoredReport]) async throws(OutputFailure) -> [RefusedReport] {
    let beating = Task { [source, time] in
      while !Task.isCancelled {
        do { try await time.sleep(for: Self.beatEvery) } catch { return }  // the page is over
        _ = try? await source.lead()  // the page's own commit says if it fails
      }
    }
    defer { beating.cancel() }
    return try await output.deliver(page)
  }

  /// Hands on the dead letters that an operator gave back. One whose report is deleted is dropped.
  private func handOnRequeued() async throws(StoreFailure) {
    if let lookedForRequeued, time.uptime - lookedForRequeued < Self.requeuedEvery { return }
    lookedForRequeued = time.uptime
    figures.dead = try await source.deadCount()
    requeuedHolds = nil
    let requeued = try await source.dead(after: 0, limit: 1000, onlyRequeued: true)
    for dead in requeued {
      if let report = try await source.next(after: dead.id - 1, limit: 1).first(where: { $0.id == dead.id }) {
        let refused: [RefusedReport]
        do throws(OutputFailure) { refused = try await deliver([report]) } catch {
          requeuedHolds = error.description
          return
        }
        try await source.note(cursor: 0, refused: refused)
        figures.refused += refused.count
        if refused.isEmpty && !dead.isDelivered { figures.delivered += 1 }
        if !refused.isEmpty { continue }
      } else {
        log.warning("a dead letter's report is deleted", ["output": name, "report": String(dead.id)])
      }
      _ = try await source.change(dead: dead.id...dead.id, .drop)
    }
    if !requeued.isEmpty { figures.dead = try await source.deadCount() }
  }
}
