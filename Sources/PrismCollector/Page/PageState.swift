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
  let tails: TailLooks
  let erasures: ErasureDesk
  let crashStates: CrashStateStore
  let notices: NoticeStore
  let jobs: JobStore
  /// Live tails, which end when the collector stops.
  var tailing: ReadGate { tails.gate }
  /// Crashes, releases and devices that are held in memory, by their readers' namespaces.
  private let views = Mutex<[Scope: View]>([:])
  /// When the collector started, milliseconds since 1970: its counts begin then.
  let startTime: Int64

  init(_ options: CollectorOptions, time: any TimeSource, log: Logger) {
    symbols = Symbolizer(options.symbolFolder, log: log)
    (tails, startTime) = (TailLooks(time: time), time.unixMilliseconds)
    (snapshots, exports) = (RecordSnapshots(folder: options.state), Exports(folder: options.state))
    erasures = ErasureDesk(state: options.state, fleet: options.fleet, time: time, log: log)
    notices = NoticeStore(options.fleet)
    jobs = JobStore(options.fleet)
    crashStates = CrashStateStore(options.fleet)
  }
}

extension PageState {
  fileprivate struct View {
    let crashes: CrashIndex, releases: ReleaseIndex
    let devices = DeviceIndex()
  }

  /// Lists of namespaces whose crashes and devices are held; past it another list's are forgotten, and read again.
  private static let viewsMax = 32

  private func view(of scope: Scope) -> View {
    let scope = scope.ofDevices
    return views.withLock { views in
      if let known = views[scope] { return known }
      if views.count >= Self.viewsMax, let other = views.keys.first(where: \.isLimited) { views[other] = nil }
      let view = View(crashes: CrashIndex(scope, symbols: symbols), releases: ReleaseIndex(scope))
      views[scope] = view
      return view
    }
  }

  func crashes(of scope: Scope) -> CrashIndex { view(of: scope).crashes }
  func releases(of scope: Scope) -> ReleaseIndex { view(of: scope).releases }
  func devices(of scope: Scope) -> DeviceIndex { view(of: scope).devices }

  /// Reports were erased: what was read of them is read again.
  func forgetReports() { views.withLock { $0 = [:] } }

  /// Something changed here that the next answer about devices must show.
  func forgetDevices() { for view in views.withLock({ Array($0.values) }) { view.devices.change() } }
}
