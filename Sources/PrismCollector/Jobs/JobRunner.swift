import PrismBase
import PrismProtocol

/// Carries jobs on: sends to the next devices at the job's rate, and reads what those answered that got it.
struct JobRunner: Sendable {
  static let interval: Duration = .seconds(5)
  /// Between two steps of one job, at least; milliseconds.
  private static let step: Int64 = 5000
  /// Answers of one step.
  private static let looksMax = 1000

  let collector: Collector

  private var jobs: JobStore { collector.access.page.jobs }

  func run() async {
    await collector.time.keepLooking(each: Self.interval) {
      do { try await look() } catch {
        collector.log.fault("collector.jobs", "jobs are not carried on", ["cause": "\(error)"])
        return false
      }
      collector.log.faultEnded("collector.jobs", "jobs are carried on again")
      return false
    }
  }

  /// Does the steps that are due.
  func look() async throws(StoreFailure) {
    let (records, now) = (collector.store, collector.time.unixMilliseconds)
    for job in try await jobs.all() where job.state != .done {
      // A clock that was ahead holds no job up.
      guard job.dueTime <= now || job.dueTime > now + 120_000 else { continue }
      let wait = max(Self.step, 60_000 / Int64(job.perMinute))
      guard try await jobs.claim(job, until: now + wait) else { continue }
      let isOver = await jobs.isOver(job, now: now, uptime: collector.time.uptime)
      try await settle(job, isOver, records, now)
      guard try await decide(job, isOver) == .running, now < job.expireTime else { continue }
      try await send(job, max(1, Int(wait * Int64(job.perMinute) / 60_000)), records, now)
      _ = try await decide(job, isOver)
    }
  }

  // MARK: Steps

  private func settle(
    _ job: Job, _ isOver: Bool, _ records: any RecordStore, _ now: Int64
  ) async throws(StoreFailure) {
    var settled: [Job.Device] = []
    for var device in try await jobs.next(of: job.id, .sent, limit: Self.looksMax) {
      guard let (place, change, _) = job.change(for: device) else { continue }
      let record = try await records.record(change.id, of: place)
      let answer = record.flatMap { try? JSONValue(parsing: $0.fields) }.flatMap { CommandAnswer(fields: $0) }
      device.changedTime = now
      if record == nil {
        (device.progress, device.result) = (.failed, "the command was taken back")
      } else if let answer, answer.state.isFinal {
        device.progress = answer.state == .done ? .done : .failed
        let result = answer.result.map { $0.string ?? $0.text } ?? answer.state.rawValue
        device.result = result.cut(atBytes: Job.resultBytesMax)
      } else if isOver {
        (device.progress, device.result) = (.failed, "the device did not answer")
      }
      settled.append(device)
    }
    try await jobs.note(settled, of: job.id)
  }

  private func send(_ job: Job, _ count: Int, _ records: any RecordStore, _ now: Int64) async throws(StoreFailure) {
    var sent: [Job.Device] = []
    for var device in try await jobs.next(of: job.id, .waiting, limit: count) {
      device.changedTime = now
      guard let (place, change, condition) = job.change(for: device) else { continue }
      do throws(RecordFailure) {
        _ = try await records.change([change], of: place, if: condition)
        if place.table == .command { device.progress = .sent } else { device.progress = .done }
      } catch {
        switch error {
        // It got the command, and the collector that gave it did not come to note that.
        case .refused(.condition, _): device.progress = .sent
        case .refused:
          let words = CollectorRefusal(error, [change]).message
          (device.progress, device.result) = (.failed, words.cut(atBytes: Job.resultBytesMax))
        case .store(let failure):
          try await jobs.note(sent, of: job.id)
          throw failure
        }
      }
      sent.append(device)
    }
    try await jobs.note(sent, of: job.id)
  }

  /// The job's state by what its devices did.
  private func decide(_ job: Job, _ isOver: Bool) async throws(StoreFailure) -> Job.State {
    let counts = try await jobs.counts(of: job.id)[job.id] ?? [:]
    let state = job.state(counts, isOver: isOver)
    guard state != job.state else { return state }
    if try await jobs.change(job, to: state) {
      collector.log.info(
        "a job is \(state.rawValue)",
        [
          "job": job.id, "namespace": job.namespace.text, "done": "\(counts[.done] ?? 0)",
          "failed": "\(counts[.failed] ?? 0)", "waiting": "\(counts[.waiting] ?? 0)",
        ])
    }
    return state
  }
}

extension Job {
  /// The rule of its end: all devices are settled; else its time; else too many that failed.
  func state(_ counts: [Progress: Int], isOver: Bool) -> State {
    let (waiting, sent) = (counts[.waiting] ?? 0, counts[.sent] ?? 0)
    if state == .cancelled || state == .expired { return state }
    if waiting == 0 && sent == 0 { return .done }
    if isOver && waiting > 0 { return .expired }
    if state == .running && counts[.failed] ?? 0 > failuresMax { return .stopped }
    return state
  }
}
