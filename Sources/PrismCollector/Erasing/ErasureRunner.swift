import Glibc
import PrismBase
import PrismPacket
import PrismProtocol

/// Which reports are erased: all of a device, with its records, or those with a value of a field.
enum Erased: Sendable, Equatable {
  case device(String)
  case field(MetaCondition, ErasedValue)

  var filter: ReportFilter {
    var filter = ReportFilter(scope: .everything)
    switch self {
    case .device(let device): filter.device = device
    case .field(let condition, _): filter.metas = [condition]
    }
    return filter
  }

  var member: JSONValue.Member {
    switch self {
    case .device(let device): .init("device", .string(device))
    case .field(_, let value): .init("where", .string(value.text))
    }
  }
}

/// Erases reports in the background, one job at a time, and writes a receipt for each that ended.
actor ErasureRunner {
  struct Job: Sendable {
    enum State: String, Sendable { case running, done, failed }

    let id: Int
    let erased: Erased
    let who: String
    /// Milliseconds since 1970.
    let started: Int64
    fileprivate(set) var state = State.running
    /// Blocks up to this id were looked at, of those up to `last`.
    fileprivate(set) var through: Int64 = 0
    fileprivate(set) var last: Int64 = 0
    fileprivate(set) var counts = (reports: 0, blocks: 0, records: 0)
    fileprivate(set) var ended: Int64?
    fileprivate(set) var cause: String?
    /// SHA-256 of the members before it, in hexadecimal.
    fileprivate(set) var receipt: String?

    var json: JSONValue {
      .object(
        facts + [
          .init("state", .string(state.rawValue)), .init("through", .int(Int(through))), .init("last", .int(Int(last))),
          .init("cause", cause.map { .string($0) } ?? .null), .init("sha256", receipt.map { .string($0) } ?? .null),
        ])
    }

    fileprivate var facts: [JSONValue.Member] {
      [
        .init("id", .int(id)), erased.member, .init("who", .string(who)), .init("started", .int(Int(started))),
        .init("ended", ended.map { .int(Int($0)) } ?? .null), .init("reports", .int(counts.reports)),
        .init("blocks", .int(counts.blocks)), .init("records", .int(counts.records)),
      ]
    }
  }

  private static let jobsMax = 100

  private let path: String
  private let fleet: FleetDatabase
  private let time: any TimeSource
  private let log: Logger
  private(set) var jobs: [Job] = []

  /// - Parameter state: the folder of the receipts.
  init(state: String, fleet: FleetDatabase, time: any TimeSource, log: Logger) {
    (self.fleet, self.time, self.log) = (fleet, time, log)
    path = FilePath.joined(state, "erasures.ndjson")
  }

  /// - Parameter forget: what is held in memory of reports begins again.
  /// - Returns: nil: another job runs.
  func begin(
    _ erased: Erased, in store: any PacketStore, who: String, _ forget: @escaping @Sendable () async -> Void = {}
  ) -> Job? {
    guard jobs.last?.state != .running else { return nil }
    let job = Job(id: (jobs.last?.id ?? 0) + 1, erased: erased, who: who, started: time.unixMilliseconds)
    jobs = jobs.suffix(Self.jobsMax - 1) + [job]
    Task(executorPreference: BackgroundExecutor.shared) { await self.run(job, store, forget) }
    return job
  }

  private func run(_ begun: Job, _ store: any PacketStore, _ forget: () async -> Void) async {
    var job = begun
    do throws(StoreFailure) {
      job.last = try await store.queries.newestID()
      var days: Set<Int64> = []
      while let block = try await store.eraseNext(job.erased.filter, after: job.through) {
        job.through = block.ids.upperBound
        job.counts.reports += block.reports
        job.counts.blocks += 1
        days.formUnion(block.days)
        show(job)
      }
      if case .device(let device) = job.erased { job.counts.records = try await store.erase(device: device) }
      try FleetErasure.run(job.erased, in: fleet)
      try await store.scrub(days)
      (job.state, job.through) = (.done, max(job.through, job.last))
    } catch {
      (job.state, job.cause) = (.failed, error.description)
      try? FleetErasure.note(in: fleet)  // some reports are gone, and the cause is in the log
    }
    await forget()
    job.ended = time.unixMilliseconds
    if job.state == .done { writeReceipt(of: &job) }
    log.log(
      job.state == .done ? .info : .error, "reports were erased",
      [
        "who": job.who, "what": JSONValue.object([job.erased.member]).text, "reports": String(job.counts.reports),
        "records": String(job.counts.records), "cause": job.cause ?? "", "sha256": job.receipt ?? "",
      ])
    show(job)
  }

  private func show(_ job: Job) { if let place = jobs.firstIndex(where: { $0.id == job.id }) { jobs[place] = job } }

  /// A line of the file, on the disk before the job is done.
  private func writeReceipt(of job: inout Job) {
    let facts = JSONValue.object(job.facts)
    guard let sum = try? Hashing.sha256(Array(facts.text.utf8)) else { return }
    job.receipt = Hex.encode(sum)
    let line = facts.adding(["sha256": job.receipt]).text + "\n"
    let bytes = Array(line.utf8)
    let file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0o600)
    defer { if file >= 0 { close(file) } }
    guard file >= 0, write(file, bytes, bytes.count) == bytes.count, fsync(file) == 0 else {
      (job.state, job.cause) = (.failed, "\(path): the receipt can't be written: \(String(cString: strerror(errno)))")
      return
    }
  }
}
