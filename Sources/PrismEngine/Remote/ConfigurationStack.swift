import PrismBase
public import PrismConfig

/// The layers of the configuration: the files, and remote configuration on top. It is the only publisher, so the newest
/// of both is in force.
public actor ConfigurationStack {
  /// The result of a change.
  public struct Outcome: Sendable {
    /// The difference that was published.
    public var change: ConfigurationChange
    /// Why the remote layer was taken off: the files that are new don't bear it.
    public var dropped: ConfigurationFaults?
  }

  // Checking thousands of namespaces takes its time.
  private let executor = DispatchQueueExecutor(label: "prism.configuration.stack")
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  private let engine: Engine
  private var files: LoadedConfiguration
  private var remote: [RemoteNamespace]
  /// The configuration in force, with the origin of each value. Its snapshot has no generation.
  public private(set) var current: LoadedConfiguration

  /// - Parameter start: what `engine` runs on.
  public init(engine: Engine, start: RemoteStart) {
    (self.engine, files, current) = (engine, start.files, start.current)
    remote = Array(start.state.layer.entries.values)
  }

  /// Puts what the files say in force, and keeps remote configuration on top. Files count before it: where they don't
  /// bear it any more (a ceiling was lowered, `remote.allow` cut), it is taken off whole.
  public func replace(files: LoadedConfiguration) async -> Outcome {
    let files = files.keepingGone(of: self.files)
    self.files = files
    let layer = files.snapshot.daemon.remote == nil ? [] : remote
    var dropped: ConfigurationFaults?
    do throws(ConfigurationFaults) {
      (current, remote) = (try files.applying(remote: layer), layer)
    } catch {
      (current, remote, dropped) = (files, [], error)
    }
    return Outcome(change: await publish(), dropped: dropped)
  }

  /// The configuration that `files` would give if they were applied now.
  public func layered(_ files: LoadedConfiguration) -> LoadedConfiguration {
    let files = files.keepingGone(of: self.files)
    // As `replace` drops it.
    return (try? files.applying(remote: files.snapshot.daemon.remote == nil ? [] : remote)) ?? files
  }

  /// Puts `remote` in place of the remote layer: all of it or, with any fault, nothing.
  func replace(remote: [RemoteNamespace]) async throws(ConfigurationFaults) -> ConfigurationChange {
    current = try files.applying(remote: remote)
    self.remote = remote
    return await publish()
  }

  private func publish() async -> ConfigurationChange {
    // Before anything is awaited: another change that comes meanwhile is published after this one.
    let change = engine.hub.publish(current.snapshot)
    await engine.adopt(change)
    return change
  }
}
