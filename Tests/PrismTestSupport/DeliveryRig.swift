import Glibc
public import PrismAdmission
public import PrismBase
public import PrismConfig
public import PrismEngine
import PrismPacket
public import PrismProtocol
import PrismStore
import Synchronization

/// An engine over a real store, with everything outside of it in the test's hands.
public final class DeliveryRig: Sendable {
  public static let key = Secret((0..<16).map { UInt8($0) })

  public let folder: String
  public let time = ManualTime()
  public let transport: ScriptedTransport
  public let network: FixedNetwork
  private let store = Mutex(Opened())

  /// The store that was opened last, while its engine lives.
  private struct Opened {
    weak var store: ReportStore?
  }

  public init(_ transport: ScriptedTransport = ScriptedTransport(), network: NetworkStatus.Kind = .unmetered) {
    folder = TemporaryFolder.make()
    (self.transport, self.network) = (transport, FixedNetwork(network))
  }

  deinit {
    for name in ["prism.db", "prism.db-wal", "prism.db-shm", "prism.lock", "ballast"] { unlink(folder + "/" + name) }
    rmdir(folder)
  }

  /// `shop` with an ordinary type, one that is realtime, one for unmetered networks only and one with payloads.
  public static func snapshot(_ change: (inout NamespaceConfiguration) -> Void = { _ in }) -> Snapshot {
    var shop = NamespaceConfiguration(
      name: NamespaceName("shop")!,
      monitorList: [
        MonitoredType(ReportType("order")!), MonitoredType(ReportType("pay")!, isRealtime: true),
        MonitoredType(ReportType("log")!, onlyWifi: true), MonitoredType(ReportType("scan")!, isUploadPayload: true),
      ])
    shop.url = "https://collector.test"
    shop.keyId = "main"
    change(&shop)
    var daemon = DaemonConfiguration()
    daemon.keys = [.init(id: "main", file: "/main.key", secret: key)]
    let prism = NamespaceConfiguration(name: .prism, monitorList: [MonitoredType(.appCrash)])
    return Snapshot(generation: 1, daemon: daemon, namespaces: [.prism: prism, shop.name: shop])
  }

  /// - Parameter transport: in place of the scripted one.
  /// - Parameter output: in place of POSTs.
  public func engine(
    _ snapshot: Snapshot = snapshot(), over transport: (any Transport)? = nil,
    to output: (any Output)? = nil, downloads: (any DownloadSource)? = nil, keys: KeyUse? = nil,
    random: Randomness = .system,
    log: Logger = Logger(write: { _ in }), rest: @escaping @Sendable () -> Void = {}
  ) async throws -> Engine {
    var options = StoreOptions(folder: folder)
    (options.time, options.log, options.ballastBytes) = (time, Logger(write: { _ in }), 0)
    let store = try await ReportStore.openOnceFree(options)
    self.store.withLock { $0.store = store }
    let engine = Engine(
      store: store, hub: ConfigurationHub(snapshot), transport: transport ?? self.transport, output: output,
      downloads: downloads, network: network,
      deviceID: "device", keys: keys, time: time, random: random, log: log, rest: rest)
    try await engine.start()
    return engine
  }

  /// Reports that tell their number.
  public func report(
    _ numbers: some Sequence<Int>, of type: String = "order", in namespace: String = "shop", isRealtime: Bool = false,
    payload: [UInt8]? = nil, to engine: Engine
  ) async {
    var batch = ReportBatch(
      namespace: NamespaceName(namespace)!, userID: 1000, context: CommonContext(members: []),
      quota: StoreQuota(bytesMax: 1 << 30, evictsOldest: false))
    batch.types = [.init(type: ReportType(type)!, priority: isRealtime ? .realtime : .rest, isRealtime: isRealtime)]
    for number in numbers {
      let start = batch.arena.count
      batch.arena += #""n":\#(number)"#.utf8
      var row = ReportBatch.Row(
        type: 0, createdTime: time.unixMilliseconds, body: start..<batch.arena.count, metaBytes: 150)
      if let payload {
        row.payload = batch.arena.count..<(batch.arena.count + payload.count)
        batch.arena += payload
      }
      batch.rows.append(row)
    }
    _ = await engine.sink.append([batch])
  }

  /// The numbers of the reports in a request, decoded as a collector does.
  public static func numbers(_ request: TransferRequest) throws -> [Int] {
    guard let headers = request.packetHeaders else { return [] }
    let reader = try PacketReader(cipher: .aes128GCM, key: key)
    let packet = try reader.read(headers, body: request.body, mac: nil)
    return try packet.metas.merged().compactMap { try JSONValue(parsing: $0)["n"]?.int }
  }

  /// Moves the time in steps until `condition` holds; false when it does not come within 7,200 steps.
  ///
  /// Each step waits for what the store has to do: a slow disk costs real time, not the manual clock's.
  public func runs(step: Duration = .milliseconds(500), until condition: () async throws -> Bool) async rethrows -> Bool
  {
    for _ in 0..<7200 {
      for _ in 0..<50 {
        if try await condition() { return true }
        await Task.yield()
      }
      _ = await store.withLock { $0.store }?.namespaces()
      time.advance(by: step)
    }
    return false
  }
}

extension ReportSink {
  public func append(_ batches: [ReportBatch]) async -> CommitOutcome {
    await withCheckedContinuation { continuation in append(batches, notes: []) { continuation.resume(returning: $0) } }
  }
}
