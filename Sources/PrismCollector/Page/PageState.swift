import PrismBase
import Synchronization

/// The state that all readers share: those of the page, and devices that ask for records.
final class PageState: Sendable {
  /// Readers' questions that are worked on: the others wait. Each may hold a page of some MiB until it is written down.
  let reading = ReadGate(countMax: 8)
  /// Questions of devices for records.
  let asking = ReadGate()
  let snapshots: RecordSnapshots
  let exports: Exports
  let symbols: Symbolizer
  let tails: TailPolls
  let erasures: ErasureRunner
  let crashStates: CrashStateStore
  let notices: NoticeStore
  let jobs: JobStore
  /// Live tails, which end when the collector stops.
  var tailing: ReadGate { tails.gate }
  private let views: Views
  /// When the collector started, milliseconds since 1970: its counts begin then.
  let startTime: Int64

  init(_ options: CollectorOptions, time: any TimeSource, log: Logger) {
    symbols = Symbolizer(options.symbolFolder, log: log)
    views = Views(
      crashes: CrashIndex(symbols: symbols), questions: RunningQuestions(time: time), isShared: options.fleet.isShared)
    (tails, startTime) = (TailPolls(time: time), time.unixMilliseconds)
    (snapshots, exports) = (RecordSnapshots(folder: options.state), Exports(folder: options.state))
    erasures = ErasureRunner(state: options.state, fleet: options.fleet, time: time, log: log)
    notices = NoticeStore(options.fleet)
    jobs = JobStore(options.fleet)
    crashStates = CrashStateStore(options.fleet)
  }

  /// Held in memory. Crashes and releases are there once, for the readers of all namespaces.
  private final class Views: Sendable {
    let crashes: CrashIndex
    let releases = ReleaseIndex()
    let questions: RunningQuestions
    /// By their readers' namespaces.
    let devices = Mutex<[Scope: DeviceIndex]>([:])

    /// Other replicas may erase reports.
    let isShared: Bool
    /// The erasures of all replicas at the last look.
    let erased = Mutex<(count: Int64?, nextLook: Duration)>((nil, .zero))

    init(crashes: CrashIndex, questions: RunningQuestions, isShared: Bool) {
      (self.crashes, self.questions, self.isShared) = (crashes, questions, isShared)
    }
  }

  /// Lists of namespaces whose devices are held; past it another list's are forgotten, and read again.
  private static let viewsMax = 32

  var crashes: CrashIndex { views.crashes }
  var releases: ReleaseIndex { views.releases }
  var questions: RunningQuestions { views.questions }

  func devices(of scope: Scope) -> DeviceIndex {
    let scope = scope.ofDevices
    return views.devices.withLock { views in
      if let known = views[scope] { return known }
      if views.count >= Self.viewsMax, let other = views.keys.first(where: \.isLimited) { views[other] = nil }
      let view = DeviceIndex()
      views[scope] = view
      return view
    }
  }

  /// Reports were erased: what was read of them is read again.
  func forgetReports() async {
    await crashes.forget()
    await releases.forget()
    questions.forget()
    views.devices.withLock { $0 = [:] }
  }

  /// The same where another replica erased them. Looks once a second at most.
  func followErasures(now: Duration) async {
    let isDue = views.erased.withLock { erased in
      guard views.isShared, now >= erased.nextLook else { return false }
      erased.nextLook = now + .seconds(1)
      return true
    }
    // While the database does not answer, neither does what is asked for.
    guard isDue, let count = try? await notices.mark(FleetErasure.mark) ?? 0 else { return }
    let isNews = views.erased.withLock { erased in
      defer { erased.count = count }
      return erased.count.map { $0 != count } ?? false
    }
    if isNews { await forgetReports() }
  }

  /// Something changed here that the next answer about devices must show.
  func forgetDevices() { for view in views.devices.withLock({ Array($0.values) }) { view.change() } }
}
