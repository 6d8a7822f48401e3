import Glibc
import PrismBase
import PrismConfig
import PrismHTTP
import PrismPacket
import Synchronization

/// A collector that listens.
public struct CollectorServer: Sendable {
  /// Of a request that changes many records.
  private static let changesBytesMax = 8 * 1_048_576
  /// Connections of readers at a time.
  public static let readersMax = 256

  private let collector: Collector
  private let senders: HTTPServer
  private let owner: HTTPServer?
  private let readers: ReaderServer?
  private let upkeep: Task<Void, Never>
  private let watches: [Task<Void, Never>]
  private let outputs: [Task<Void, Never>]

  /// Of the senders' address.
  public var port: UInt16 { senders.port }
  /// Of the reader's address; nil: it is not served, since there are no reader's tokens, and no `servesLocalReaders`, or
  /// another program has it.
  public var readerPort: UInt16? { readers?.server?.port }

  init(_ collector: Collector) throws {
    self.collector = collector
    for warning in collector.options.symbolWarnings { collector.log.warning(warning, [:]) }
    let options = collector.options
    owner = collector.ownerServer()
    let isRead = collector.access.needsReaderToken || options.servesLocalReaders
    let readers = try isRead ? ReaderServer(collector, bodyBytesMax: Self.changesBytesMax) : nil
    self.readers = readers
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
    let looks: [@Sendable () async -> Void] = [
      CrashWatch(collector).run, DeviceWatch(collector: collector).run, NoticeWatch(collector: collector).run,
      { await collector.remote?.guards.run(collector) }, QuotaWatch(collector: collector).run,
      { await readers?.listenAgain() },
    ]
    watches =
      looks.map { watch in Task(executorPreference: BackgroundExecutor.shared) { await watch() } } + [
        Task { await collector.access.audit?.run() }, Task { await DebugFileSource(collector)?.run() },
        Task { await JobRunner(collector: collector).run() },
      ]
    Task { await collector.beginAdmission() }
    let tellers = options.notices.map { NoticeSender($0, collector) }
    outputs =
      collector.outputs.map { output in Task { await output.run() } }
      + tellers.map { teller in Task { await teller.run() } }
  }

  /// For requests and pages that are on their way. Those that the other side of an output, or a database, does not answer by then
  /// come again.
  private static let stopMax: Duration = .milliseconds(4500)

  /// Takes no more packets, answers those that it has, and ends.
  public func stop() async {
    guard await collector.time.value(within: Self.stopMax, of: { await finish() }) == nil else { return }
    collector.log.warning("the collector ends with work that is not answered; it comes again", [:])
  }

  private func finish() async {
    upkeep.cancel()
    for watch in watches { watch.cancel() }
    for output in outputs { output.cancel() }
    collector.access.page.tailing.close()
    collector.access.page.reading.close()
    await collector.queue.close()  // packets that are held would hold up the stop
    await withTaskGroup { group in
      for server in [owner, readers?.server, senders] { group.addTask { await server?.stop() } }
    }
    for output in outputs { await output.value }
    await collector.close()
  }
}

/// Serves the API and the page on the address for readers. Where another program has it, devices are served all the same.
private final class ReaderServer: Sendable {
  private static let faultKey = "listen.reader"
  private static let listenInterval: Duration = .seconds(10)

  private let collector: Collector
  private let limits: HTTPServerOptions
  private let state = Mutex<HTTPServer?>(nil)

  /// nil: another program has the address.
  var server: HTTPServer? { state.withLock { $0 } }

  /// - Throws: for an address that this machine does not have.
  init(_ collector: Collector, bodyBytesMax: Int) throws {
    var limits = HTTPServerOptions.ofReaders(bodyBytesMax: bodyBytesMax)
    (limits.connectionsMax, limits.trustedProxies) = (CollectorServer.readersMax, collector.options.trustedProxies)
    limits.tls = collector.options.tls.map { HTTPServerTLS(certificate: $0.certificate, key: $0.key) }
    (self.collector, self.limits) = (collector, limits)
    try listen()
  }

  private func listen() throws(HTTPServerError) {
    do throws(HTTPServerError) {
      let collector = collector
      let listener = try ListeningSocket(address: collector.options.readerListen)
      let server = try HTTPServer(listener: listener, options: limits) {
        await collector.answerReader($0, isOwner: false)
      }
      state.withLock { $0 = server }
    } catch {
      guard case .cannotListen(_, EADDRINUSE) = error else { throw error }
      collector.log.fault(
        Self.faultKey, "the address for readers is not free: it is tried again", ["cause": "\(error)"], level: .error)
    }
  }

  /// Until it listens.
  func listenAgain() async {
    while server == nil {
      do { try await collector.time.sleep(for: Self.listenInterval) } catch { return }  // the collector stops
      try? listen()  // it was logged at the start
    }
    collector.log.faultEnded(Self.faultKey, "readers are served", ["address": collector.options.readerListen])
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
    self.devices.begin(devices: devices, log)
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
