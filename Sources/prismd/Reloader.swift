import Dispatch
import PrismBase
import PrismConfig
import PrismEngine
import PrismLinux

/// Reads the files again and applies the configuration: all of it, or nothing if it has a fault.
///
/// One reload runs at a time. A request during a reload waits for the next one, which begins after the request and
/// serves all requests until then. So a storm of reloads is a few, and ends with the last content of the files.
actor Reloader: ConfigurationSource {
  private static let queue = DispatchQueue(label: "prism.configuration")
  /// Younger changes are answered to a reload that finds no others.
  private static let newsAgeMax: Duration = .seconds(60)

  private let configPath: String
  private let engine: Engine
  private let stack: ConfigurationStack
  private let remote: RemoteConfigurationClient
  let edges: ReloadableListeners
  private let notifier: ServiceNotifier
  private let watcher: FileWatcher
  private let log: Logger
  /// The last changes that files made.
  private var taken: (lines: [String], at: ContinuousClock.Instant)?
  private var running: Task<ReloadOutcome, Never>?
  private var waiting: Task<ReloadOutcome, Never>?

  init(
    configPath: String, engine: Engine, stack: ConfigurationStack, remote: RemoteConfigurationClient,
    edges: ReloadableListeners,
    notifier: ServiceNotifier, watcher: FileWatcher, log: Logger
  ) {
    (self.configPath, self.engine, self.stack, self.remote) = (configPath, engine, stack, remote)
    (self.edges, self.notifier, self.watcher, self.log) = (edges, notifier, watcher, log)
  }

  /// Changes of the files and folders are noticed from now on.
  func watch() async { await watch([]) }

  private func watch(_ more: [String]) async {
    let current = await stack.current
    await watcher.watch(files: Set(current.files + more), folders: [current.namespaceFolder])
  }

  // MARK: ConfigurationSource

  func inForce() async -> LoadedConfiguration { await stack.current }

  func read(_ path: String) async throws(ConfigurationFaults) -> LoadedConfiguration {
    await stack.layered(try await readFiles(path))
  }

  private func readFiles(_ path: String) async throws(ConfigurationFaults) -> LoadedConfiguration {
    let result: Result<LoadedConfiguration, ConfigurationFaults> = await withCheckedContinuation { continuation in
      Self.queue.async {
        continuation.resume(
          returning: Result { () throws(ConfigurationFaults) in try configurationLoader(path).load() })
      }
    }
    return try result.get()
  }

  func reload() async -> ReloadOutcome {
    if let waiting { return await waiting.value }
    let before = running
    let task = Task {
      _ = await before?.value
      begin()
      return await reloadOnce()
    }
    waiting = task
    return await task.value
  }

  private func begin() { (running, waiting) = (waiting, nil) }

  // MARK: One reload

  /// The service manager is informed of every reload, however it was requested.
  private func reloadOnce() async -> ReloadOutcome {
    notifier.reloading()
    let outcome = await takeFiles()
    if case .refused(let faults) = outcome { tellReady(faults: faults.count) } else { tellReady() }
    return outcome
  }

  /// Logs what keeps reports here.
  func logNextStep() async {
    let waiting = await engine.unsentRows()
    guard let text = NextStep.text(await stack.current, unsent: { waiting[$0] ?? 0 }) else { return }
    log.warning("reports stay here", ["next": text])
  }

  /// - Parameter faults: of a configuration that was refused just now.
  func tellReady(faults: Int = 0) {
    let refusal = faults == 0 ? "" : "; a newer one was refused for \("fault".counted(faults))"
    notifier.ready(
      status: "taking reports, configuration \(engine.hub.current.generation) is in force\(refusal)")
  }

  private func takeFiles() async -> ReloadOutcome {
    do throws(ConfigurationFaults) {
      let new = try await readFiles(configPath)
      if let faults = new.reloadFaults(running: engine.hub.current) { throw faults }
      // Steps that can fail come first: a published configuration is in force everywhere.
      try await edges.take(new, before: engine.hub.current.daemon)
      return await publish(new)
    } catch {
      await watch(error.files)
      return refuse(error)
    }
  }

  private func refuse(_ faults: ConfigurationFaults) -> ReloadOutcome {
    let lines = faults.faults.map(\.description)
    engine.hub.refuse(lines)
    for line in lines { log.error("the configuration was not taken", ["fault": line]) }
    return .refused(lines)
  }

  private func publish(_ new: LoadedConfiguration) async -> ReloadOutcome {
    let hadFaults = !engine.hub.faults.isEmpty
    let change = await remote.replace(files: new).change
    await engine.reloaded()
    await watch([])
    await edges.follow(change.new.daemon)
    guard !change.isNothing else {
      if hadFaults { log.info("the configuration has no fault any more, and is as it was before it") }
      return unchanged(change.new.generation)
    }
    log.info("a new configuration is in force", ["generation": String(change.new.generation)])
    await logNextStep()
    let difference = SnapshotDiff(from: change.old, to: change.new)
    for name in difference.gone {
      log.warning(
        "the file of a namespace is gone: it stays as it was until a file says `retired: true`, or prismd starts again",
        ["namespace": "\(name)"])
    }
    taken = (difference.lines, .now)
    return .inForce(generation: change.new.generation, changes: difference.lines)
  }

  /// Answers an operator who asks for changes that the watch has just taken.
  private func unchanged(_ generation: Int) -> ReloadOutcome {
    guard let taken, case let age = ContinuousClock.now - taken.at, age < Self.newsAgeMax else {
      return .inForce(generation: generation, changes: [])
    }
    return .inForce(generation: generation, changes: taken.lines, secondsAgo: max(1, Int(age.components.seconds)))
  }
}
