public import PrismAdmission
public import PrismBase
public import PrismConfig
public import PrismProtocol
public import PrismStore

/// The daemon's delivery as a whole: a pipeline for each namespace, the store's maintenance, reloads, the network.
public actor Engine {
  /// How long a POST that is on its way may take when the daemon stops (docs/delivery.md).
  public static let stopMax: Duration = .seconds(5)
  private static let maintenanceInterval: Duration = .seconds(10)
  /// Sooner after the start, so that the daemon rests soon.
  private static let (startInterval, startPasses): (Duration, Int) = (.seconds(3), 3)

  /// The configuration in force.
  public nonisolated let hub: ConfigurationHub
  /// Where the ingest socket hands its batches to.
  public nonisolated var sink: any ReportSink { ingest }

  /// Passes reports to their followers as they come.
  public nonisolated let feed = ReportFeed()

  nonisolated let parts: PipelineParts
  nonisolated let news: News
  nonisolated let startedAt: Duration
  nonisolated let ingest: IngestSink
  /// For probes of collectors; packets go by `parts.output`.
  nonisolated let transport: any Transport
  /// The derived one, used if the configuration names no id.
  let automaticDeviceID: String
  private let rest: @Sendable () -> Void
  private(set) var pipelines: [NamespaceName: NamespacePipeline] = [:]
  private var loops: [Task<Void, Never>] = []
  private var adoption: Task<Void, Never>?

  struct News: Sendable {
    /// Versions of remote configuration that collectors name, the newest only where the reader is behind.
    let versions: AsyncStream<Int64>
    /// Conflicts of records; of those that nothing takes, the first ones stay.
    let clashes: AsyncStream<RecordClashNews>
  }

  /// Conflicts of records as they come; one reader takes them.
  public nonisolated var clashes: AsyncStream<RecordClashNews> { news.clashes }

  /// - Parameter deviceID: the derived one, used if the configuration names no id.
  /// - Parameter output: where packets go; nil: to each namespace's `url` over `transport`.
  /// - Parameter downloads: fetches tables of records; nil: no table comes down.
  /// - Parameter keys: counts the blocks of the keys; nil: they are counted for this run only.
  /// - Parameter packetsMax: packets that one namespace and kind may have on their way at a time, also where its
  ///   `window` is larger; 1 to 64. So one that is slow does not take all transfers.
  /// - Parameter rest: called after each look at the store that found it idle.
  public init(
    store: ReportStore, hub: ConfigurationHub, transport: any Transport, output: (any Output)? = nil,
    downloads: (any DownloadSource)? = nil, network: any NetworkMonitor, deviceID: String, keys: KeyUse? = nil,
    packetsMax: Int = 64, time: any TimeSource = SystemTime(),
    random: Randomness = .system, log: Logger, rest: @escaping @Sendable () -> Void = {}
  ) {
    let (versions, announcements) = AsyncStream.makeStream(of: Int64.self, bufferingPolicy: .bufferingNewest(1))
    let (clashes, clashNews) = AsyncStream.makeStream(of: RecordClashNews.self, bufferingPolicy: .bufferingOldest(1000))
    news = News(versions: versions, clashes: clashes)
    parts = PipelineParts(
      store: store, output: output ?? HTTPOutput(transport: transport, time: time),
      dictionaries: DictionaryFetch(transport: transport, time: time, random: random, log: log), network: network,
      builder: PacketBuilder(keys: keys ?? KeyUse(file: nil, log: log)),
      puller: RecordPuller(downloads, store: store, time: time, random: random),
      packetsMax: packetsMax, time: time, random: random, log: log, announcements: announcements, clashes: clashNews)
    (self.hub, self.transport, automaticDeviceID, self.rest, startedAt) = (hub, transport, deviceID, rest, time.uptime)
    let sealing = PayloadSealing { hub.current.daemon.deviceId ?? deviceID }
    ingest = IngestSink(store: store, sealing: sealing, time: time, feed: feed, log: log)
  }

  /// Takes up what the last run left, and begins to deliver.
  public func start() async throws(StoreError) {
    try await parts.store.apply(Self.policies(hub.current))
    let keys = CountedKey.all(of: hub.current.daemon)
    await parts.keys.load(inUse: keys)
    parts.keys.tell(of: keys)
    await refreshPipelines()
    let changes = parts.network.changes()
    loops = [
      Task { [weak self] in for await _ in changes { await self?.networkChanged() } },
      Task { [weak self] in await self?.maintain() },
    ]
  }

  /// Puts a new configuration in force; only namespaces that it changes notice.
  @discardableResult
  public func publish(_ snapshot: Snapshot) async -> ConfigurationChange {
    let change = hub.publish(snapshot)
    await adopt(change)
    return change
  }

  /// Takes notice of what was published. One change after another: the newest snapshot is the one that all end with.
  func adopt(_ change: ConfigurationChange) async {
    guard !change.isNothing else { return }
    let before = adoption
    let task = Task {
      await before?.value
      await notice(change)
    }
    adoption = task
    await task.value
  }

  private func notice(_ change: ConfigurationChange) async {
    let snapshot = hub.current
    do throws(StoreError) {
      try await parts.store.set(snapshot.daemon.durability == .full ? .full : .normal)
      try await parts.store.apply(Self.policies(snapshot))
    } catch {
      parts.log.warning("stored reports could not be held to the new configuration", ["cause": error.description])
    }
    parts.keys.tell(of: CountedKey.all(of: snapshot.daemon))
    await refreshPipelines(changed: change.namespaces)
  }

  /// The files were read again, with any result: rows that a fault of configuration holds are tried at once. The fault
  /// may have been at the collector.
  public func reloaded() async {
    for pipeline in pipelines.values { await pipeline.reloaded() }
  }

  /// Finishes what is on its way, up to `stopMax`; the rest waits for the next start.
  public func stop() async {
    for loop in loops { loop.cancel() }
    let deadline = parts.time.uptime + Self.stopMax
    await withTaskGroup(of: Void.self) { group in
      for pipeline in inOrder { group.addTask { await pipeline.stop(deadline: deadline) } }
    }
    await parts.keys.close()
    await parts.store.close()
  }

  /// Returns when the store's queue and every pipeline have turned: it hangs where one does, and a watchdog is fed on it.
  public func turns() async {
    _ = await parts.store.namespaces()
    for pipeline in pipelines.values { await pipeline.turns() }
  }

  /// The program serves: what a crash costs from now on is not the store's doing (docs/store.md, "Start").
  public func markReady() async { await parts.store.markReady() }

  /// - Parameter observer: called after each commit that changed records, by programs or by the server, on the store's queue.
  public func observeRecords(_ observer: @escaping @Sendable ([RecordTableChange]) -> Void) async {
    await parts.store.observeRecords(observer)
  }

  /// How the store is: what `/readyz` and the metrics tell. Never waits.
  public nonisolated var storeHealth: StoreHealth { parts.store.health }

  /// Rows that wait or are in flight, by namespace, as of the last status.
  public func unsentRows() async -> [NamespaceName: Int] {
    await parts.store.lastKnownStatus().mapValues { kinds in
      kinds.values.reduce(0) { $0 + $1.ledger.unsent }
    }
  }

  /// - Returns: false for an unknown namespace.
  func flush(_ namespace: NamespaceName?) async -> Bool {
    let flushed = pipelines.filter { namespace == nil || $0.key == namespace }.sorted { $0.key < $1.key }
    for (_, pipeline) in flushed { await pipeline.flush() }
    return namespace == nil || !flushed.isEmpty
  }

  /// Sends dead letters once more, at once, or drops them.
  /// - Returns: how many.
  func settle(
    _ letters: DeadLetterSelection, isRequeue: Bool, of namespace: NamespaceName?
  ) async throws(StoreError) -> Int {
    guard isRequeue else { return try await parts.store.drop(letters) }
    let count = try await parts.store.requeue(letters)
    _ = await flush(namespace)
    return count
  }

  /// Every namespace that is configured, or has ever stored something.
  private func refreshPipelines(changed: Set<NamespaceName> = []) async {
    let snapshot = hub.current
    let known = Set(snapshot.namespaces.keys).union(await parts.store.namespaces()).union(pipelines.keys)
    let fresh = known.subtracting(pipelines.keys)
    let settings = { [automaticDeviceID] namespace in
      PipelineSettings(namespace: namespace, snapshot: snapshot, automaticDeviceID: automaticDeviceID)
    }
    for namespace in fresh {
      pipelines[namespace] = NamespacePipeline(parts: parts, settings: settings(namespace), signal: UploadSignal())
    }
    // Reports that come from here on wake their pipeline; those that came before are among what remains.
    ingest.set(pipelines)
    ingest.set(snapshot)
    let remains = fresh.isEmpty ? [:] : await remains()
    for namespace in known.sorted() {
      if fresh.contains(namespace) {
        await pipelines[namespace]?.start(with: remains[namespace] ?? .none)
      } else if changed.contains(namespace) {
        await pipelines[namespace]?.apply(settings(namespace))
      }
    }
    if !changed.isEmpty { await parts.builder.forgetKey() }
    await writeTags(of: snapshot)
  }

  /// The same tags cost no write.
  private func writeTags(of snapshot: Snapshot) async {
    guard let tags = snapshot.daemon.deviceTags else { return }
    for namespace in snapshot.namespaces.values.filter(\.hasTags).map(\.name).sorted() {
      do throws(StoreError) {
        guard try await parts.store.write(tags, of: namespace) else { continue }
        await pipelines[namespace]?.synchronizing { $0.commandAnswered() }
      } catch {
        parts.log.warning("the tags of this device can't be written down", ["cause": error.description])
      }
    }
  }

  /// Notes that can't be read: the namespace is taken for one with reports and without notes.
  private func remains() async -> [NamespaceName: NamespaceRemains] {
    do { return try await parts.store.remains() } catch {
      parts.log.warning("what was known of the namespaces' retries can't be read", ["cause": error.description])
      let names = await parts.store.namespaces()
      return Dictionary(uniqueKeysWithValues: names.map { ($0, NamespaceRemains(notes: [:], hasReports: true)) })
    }
  }

  /// By their names, so that a simulation does the same in every run.
  private var inOrder: [NamespacePipeline] { pipelines.sorted { $0.key < $1.key }.map(\.value) }

  private func networkChanged() async {
    for pipeline in inOrder { await pipeline.networkChanged() }
  }

  private func maintain() async {
    // No number of uses yet: what was not looked at before has not come to rest.
    var (uses, isIdle) = (-1, true)
    for pass in 0... {
      if Task.isCancelled { return }
      do {
        let (before, windows) = (parts.store.health, await parts.store.windowsEnded)
        repeat {
          isIdle = await parts.store.uses == uses
          uses = await parts.store.uses
        } while try await parts.store.maintain(isIdle: isIdle) && !Task.isCancelled
        let health = parts.store.health
        let isNews = await parts.store.windowsEnded != windows
        if isNews || health.salvagedRows != before.salvagedRows || health.awaited != before.awaited {
          await reportsCameBack()
        }
        // After each idle pass: the pass itself used what was given back before.
        if isIdle { rest() }
        parts.log.faultEnded("maintenance", "the store is maintained again")
      } catch {
        parts.log.fault("maintenance", "the store could not be maintained", ["cause": error.description])
      }
      let pause = pass < Self.startPasses ? Self.startInterval : Self.maintenanceInterval
      do { try await parts.time.sleep(for: pause) } catch { return }  // the daemon stops
    }
  }

  /// Reports of a damaged database, or rows of windows, wait.
  private func reportsCameBack() async {
    await refreshPipelines()
    for pipeline in pipelines.values { await pipeline.reportsCameBack() }
  }

  private static func policies(_ snapshot: Snapshot) -> [NamespaceName: RetentionPolicy] {
    snapshot.namespaces.mapValues { namespace in
      var policy = RetentionPolicy(namespace)
      if namespace.keepsInMemory { policy.memoryFolder = snapshot.daemon.memory }
      return policy
    }
  }
}
