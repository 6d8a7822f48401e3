import Dispatch
import PrismBase
import PrismConfig
import PrismEngine
import PrismHTTP
import PrismLinux

/// Reads the files anew and puts what they say in force: all of it, or, with any fault, none.
struct Reloader: Sendable {
  private static let queue = DispatchQueue(label: "prism.configuration")

  let configPath: String
  let engine: Engine
  let stack: ConfigurationStack
  let network: NetlinkMonitor
  let metrics: MetricsServer
  let watcher: FileWatcher
  let log: Logger

  /// Changes of these files and folders are noticed from now on.
  func watch(_ loaded: LoadedConfiguration) async {
    await watcher.watch(files: Set(loaded.files), folders: [loaded.namespaceFolder])
  }

  func reload() async -> ControlDesk.ReloadOutcome {
    let path = configPath
    let result: Result<LoadedConfiguration, ConfigurationFaults> = await withCheckedContinuation { continuation in
      Self.queue.async {
        continuation.resume(
          returning: Result { () throws(ConfigurationFaults) in try configurationLoader(path).load() })
      }
    }
    switch result {
    case .failure(let faults): return refuse(faults)
    case .success(let loaded):
      await watch(loaded)
      if let faults = loaded.reloadFaults(running: engine.hub.current) { return refuse(faults) }
      do { try await metrics.listen(on: loaded.snapshot.daemon.metricsListen) } catch {
        return refuse(
          ConfigurationFaults([.init(file: path, line: 0, key: "metrics.listen", message: error.description)]))
      }
      return await publish(loaded)
    }
  }

  private func refuse(_ faults: ConfigurationFaults) -> ControlDesk.ReloadOutcome {
    let lines = faults.faults.map(\.description)
    engine.hub.refuse(lines)
    for line in lines { log.error("the configuration was not taken", ["fault": line]) }
    return .faults(lines)
  }

  private func publish(_ loaded: LoadedConfiguration) async -> ControlDesk.ReloadOutcome {
    let change = await stack.replace(files: loaded).change
    guard !change.isNothing else { return .done("nothing changed") }
    Daemon.apply(change.new.daemon, to: log)
    await network.update(change.new.daemon.network)
    let lines = SnapshotDiff(from: change.old, to: change.new).lines
    log.info("a new configuration is in force", ["generation": String(change.new.generation)])
    return .done((["generation \(change.new.generation)"] + lines).joined(separator: "\n"))
  }
}
