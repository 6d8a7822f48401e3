import PrismBase
import PrismConfig
import PrismHTTP
import PrismPacket

/// A collector that listens.
public struct CollectorServer: Sendable {
  /// Of a request that changes many records.
  private static let changesBytesMax = 8 * 1_048_576
  /// Connections of readers at a time.
  public static let readersMax = 256

  private let collector: Collector
  private let senders: HTTPServer
  private let readers: [HTTPServer]
  private let upkeep: Task<Void, Never>
  private let watches: [Task<Void, Never>]
  private let outputs: [Task<Void, Never>]

  /// Of the senders' address.
  public var port: UInt16 { senders.port }
  /// Of the reader's address; nil: it is not served, since there are no reader's tokens, and no `servesLocalReaders`.
  public let readerPort: UInt16?

  init(_ collector: Collector) throws {
    self.collector = collector
    for warning in collector.options.symbolWarnings { collector.log.warning(warning, [:]) }
    let options = collector.options
    let owner = collector.ownerServer()
    var network: HTTPServer?
    if collector.access.needsReaderToken || options.servesLocalReaders {
      var limits = HTTPServerOptions.ofReaders(bodyBytesMax: Self.changesBytesMax)
      (limits.connectionsMax, limits.trustedProxies) = (Self.readersMax, options.trustedProxies)
      limits.tls = options.tls.map { HTTPServerTLS(certificate: $0.certificate, key: $0.key) }
      network = try HTTPServer(listener: ListeningSocket(address: options.readerListen), options: limits) {
        await collector.answerReader($0, isOwner: false)
      }
    }
    readers = [owner, network].compactMap { $0 }
    readerPort = network?.port
    var limits = HTTPServerOptions()
    limits.bodyBytesMax = options.bodyBytesMax
    limits.bodiesBytesMax = max(32 * 1_048_576, options.bodyBytesMax)
    (limits.connectionsMax, limits.trustedProxies) = (options.connectionsMax, options.trustedProxies)
    limits.headBytesMax = 16 * 1024  // each of ten thousand connections keeps as much
    limits.onCrowded = { [refusals = collector.refusals] in refusals.add($0, from: $1) }
    limits.tls = options.tls
    let address = try ListeningSocket(address: options.listen)
    let senders = try HTTPServer(
      listener: address, options: limits, time: collector.time, gate: HeadCheck(collector: collector).admit
    ) { await collector.answer($0) }
    self.senders = senders
    collector.counts.watch { [weak senders] in senders?.connections }
    upkeep = Task { await collector.keepUp() }
    let readers: [@Sendable () async -> Void] = [
      CrashWatch(collector).run, DeviceWatch(collector: collector).run, NoticeWatch(collector: collector).run,
      { await collector.remote?.guards.run(collector) }, QuotaWatch(collector: collector).run,
    ]
    watches =
      readers.map { watch in Task(executorPreference: BackgroundExecutor.shared) { await watch() } } + [
        Task { await collector.access.audit?.run() }, Task { await DebugFileSource(collector)?.run() },
        Task { await JobRunner(collector: collector).run() },
      ]
    Task { await collector.beginAdmission() }
    let tellers = options.notices.map { NoticeSender($0, collector) }
    outputs =
      collector.outputs.map { output in Task { await output.run() } }
      + tellers.map { teller in Task { await teller.run() } }
  }

  /// Takes no more packets, answers those that it has, and ends.
  public func stop() async {
    upkeep.cancel()
    for watch in watches { watch.cancel() }
    for output in outputs { output.cancel() }
    collector.access.page.tailing.close()
    collector.access.page.reading.close()
    await collector.queue.close()  // packets that are held would hold up the stop
    await withTaskGroup { group in
      for server in readers + [senders] { group.addTask { await server.stop() } }
    }
    for output in outputs { await output.value }
    await collector.close()
  }
}

extension HTTPServerOptions {
  /// Readers may give several conditions, and wait for devices.
  fileprivate static func ofReaders(bodyBytesMax: Int) -> Self {
    var options = Self()
    (options.bodyBytesMax, options.listParameters, options.isBackground) = (bodyBytesMax, ["meta", "field"], true)
    return options
  }
}

extension TimeSource {
  /// Looks until the task is cancelled. - Parameter look: returns whether more is due: then the next one is after `pause`. Its
  /// errors are in the log already.
  func keepLooking(each interval: Duration, pause: Duration = .zero, _ look: @Sendable () async throws -> Bool) async {
    while !Task.isCancelled {
      let isMoreDue = (try? await look()) ?? false
      do { try await sleep(for: isMoreDue ? pause : interval) } catch { return }  // the collector stops
    }
  }
}

extension Collector {
  /// Listens and serves until the server is stopped. - Throws: `HTTPServerError`.
  public func serve() throws -> CollectorServer { try CollectorServer(self) }

  /// The Unix socket in the state folder; nil where its path is too long.
  fileprivate func ownerServer() -> HTTPServer? {
    let path = options.state + "/reader.sock"
    do throws(HTTPServerError) {
      let limits = HTTPServerOptions.ofReaders(bodyBytesMax: options.bodyBytesMax + CarriedPacket.headBytesMax)
      return try HTTPServer(listener: ListeningSocket(unixPath: path), options: limits) { [self] in
        await answerReader($0, isOwner: true)
      }
    } catch {
      log.warning(
        "the reader's socket can't be made: reports are read with a reader's token only", ["cause": "\(error)"])
      return nil
    }
  }

  /// A store that is away now refuses packets; then no device has to be let in gradually.
  fileprivate func beginAdmission() async {
    guard let devices = try? await store.deviceCount() else { return }
    self.devices.admission.begin(devices: devices)
  }

  /// Once a minute, and at once where more is due.
  fileprivate func keepUp() async {
    var commands = CommandRetention()
    while !Task.isCancelled {
      refusals.flush()
      var isMoreDue = (try? await store.maintain()) ?? false  // the store logs its failures
      if !isMoreDue { isMoreDue = await commands.delete(from: store, time, log) }
      if !isMoreDue { await openers.dictionaries?.maintain() }
      do { try await time.sleep(for: isMoreDue ? .milliseconds(5) : .seconds(60)) } catch { return }  // it stops
    }
  }

  func close() async {
    refusals.flush()
    await devices.facts.write()
    await access.audit?.write()
    await store.close()
  }
}
