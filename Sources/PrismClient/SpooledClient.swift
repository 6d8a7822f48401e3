import CPrism
import Dispatch
public import PrismProtocol

/// Reports without waiting, and keeps them in a spool on disk while the daemon is away.
///
///     let client = try SpooledClient(appName: "pos", appVersion: "4.2.0")
///     let shop = client.namespace(NamespaceName("shop")!)
///     shop.send(ReportType("orderPlaced")!, meta: ["total": 42])
///     let answer = await shop.report(ReportType("orderPlaced")!, meta: ["total": 43], within: .seconds(2))
///
/// The queue, the thread and the spool are those of the C client (docs/clients.md): programs in C, Python and Swift share
/// one spool. Nothing is connected or written before the first report. Its end moves what is left to the spool.
public final class SpooledClient: Sendable {
  /// Where the spool is.
  public enum Spool: Sendable, Equatable {
    /// `PRISM_SPOOL`, else a place of the user's or the unit's: see docs/clients.md.
    case standard
    /// A folder of this user's, made when missing.
    case folder(String)
    case none
  }

  /// The options are wrong: a path is too long, or memory ran out.
  public struct OpenError: Error, CustomStringConvertible {
    /// The reason, for people.
    public let description: String
  }

  // Every function of the C client may be called by any thread; prism_close is called by deinit alone.
  private nonisolated(unsafe) let client: OpaquePointer
  /// Released after prism_close, which may call it.
  private let lossHandler: Unmanaged<LossHandler>?
  /// Calls that wait do so here.
  private let queue = DispatchQueue(label: "prism.spooled-client")
  let watches: ClientWatches

  /// - Parameter socket: the daemon's; nil: the environment's `PRISM_INGEST`, else the default.
  /// - Parameter appName: common information of the app, cut at 256 bytes; nil: the process's name.
  /// - Parameter spoolBytes: the most that the spool holds over all programs that share it; at least 65,536.
  /// - Parameter queueBytes: the most that waits in memory; 65,536 to 1 GiB, rounded up to a power of two.
  /// - Parameter onLoss: called on the client's own thread when reports are dropped, at most once a second for each cause, and
  ///   for the last time while the client ends. It must not release the client.
  public init(
    socket: String? = nil, appName: String? = nil, appVersion: String? = nil, spool: Spool = .standard,
    spoolBytes: UInt64 = 64 * 1024 * 1024, queueBytes: Int = 4 * 1024 * 1024,
    onLoss: (@Sendable (SpooledLoss) -> Void)? = nil
  ) throws(OpenError) {
    let folder: String? =
      switch spool {
      case .standard: nil
      case .folder(let path): path
      case .none: ""
      }
    let handler = onLoss.map { Unmanaged.passRetained(LossHandler($0)) }
    var error = PRISM_STORED
    let opened = withOptionalCStrings(socket, appName, appVersion, folder) { socket, name, version, folder in
      var options = prism_options()
      options.size = MemoryLayout<prism_options>.size
      (options.socket, options.app_name, options.app_version, options.spool) = (socket, name, version, folder)
      (options.spool_bytes, options.queue_bytes) = (spoolBytes, queueBytes)
      if let handler { (options.on_loss, options.context) = (LossHandler.called, handler.toOpaque()) }
      return prism_open(&options, &error)
    }
    guard let opened else {
      handler?.release()
      throw OpenError(description: String(cString: prism_result_text(error)))
    }
    (client, lossHandler) = (opened, handler)
    watches = ClientWatches(socket: PrismClient.socket(socket))
  }

  deinit {
    watches.stop()
    prism_close(client, 0)
    lossHandler?.release()
  }

  /// Begins a session of the app, and ends the one before it (docs/sessions.md). Connects without waiting. Without sessions of its
  /// own each connection of the client is one.
  public func beginSession() { _ = prism_session_begin(client) }

  /// Ends the session: the app is not in use until the next one begins.
  public func endSession() { _ = prism_session_end(client) }

  /// A handle that reports to one namespace.
  public func namespace(_ name: NamespaceName) -> NamespaceReporter { NamespaceReporter(client: self, name: name) }

  /// Reports without waiting. - Returns: `queued`, `dropped` or `rejected`.
  @discardableResult
  public func send(_ report: Report) -> SpooledAnswer {
    var answer = prism_answer()
    let result = report.withClientData { prism_report(client, $0, 0, &answer) }
    return SpooledAnswer(result, answer)
  }

  /// Reports, and waits for the daemon's answer.
  /// - Parameter deadline: how long; after it the answer is `queued` or `spooled`, and the report is sent all the same.
  public func report(_ report: Report, within deadline: Duration) async -> SpooledAnswer {
    await withCheckedContinuation { continuation in
      let waiter = Unmanaged.passRetained(Waiter(continuation))
      let result = report.withClientData {
        prism_report_async(client, $0, deadline.clientMilliseconds, Waiter.done, waiter.toOpaque())
      }
      guard result != PRISM_QUEUED else { return }
      waiter.release()
      continuation.resume(returning: SpooledAnswer(result, prism_answer()))
    }
  }

  /// Waits until all earlier reports are answered or in the spool.
  /// - Returns: whether they are.
  @discardableResult
  public func flush(within deadline: Duration) async -> Bool {
    // The caller holds the client. A job with a reference of its own may be the last to let go of it, after this returned:
    // the client would end later than its owner thinks.
    nonisolated(unsafe) let client = client
    return await withCheckedContinuation { continuation in
      queue.async {
        let result = prism_flush(client, deadline.clientMilliseconds)
        continuation.resume(returning: result == PRISM_STORED || result == PRISM_SPOOLED)
      }
    }
  }

  /// Counts since the start.
  public var counts: SpooledCounts {
    var stats = prism_stats()
    stats.size = MemoryLayout<prism_stats>.size
    prism_get_stats(client, &stats)
    return SpooledCounts(stats)
  }

  /// Carries a continuation through C.
  private final class Waiter {
    private let continuation: CheckedContinuation<SpooledAnswer, Never>

    init(_ continuation: CheckedContinuation<SpooledAnswer, Never>) { self.continuation = continuation }

    static let done: prism_done = { context, result, answer in
      guard let context, let answer else { return }
      let waiter = Unmanaged<Waiter>.fromOpaque(context).takeRetainedValue()
      waiter.continuation.resume(returning: SpooledAnswer(result, answer.pointee))
    }
  }
}

extension SpooledAnswer {
  fileprivate init(_ result: prism_result, _ answer: prism_answer) {
    self.init(
      result, reportID: text(of: answer.report_id), code: text(of: answer.code), message: text(of: answer.message))
  }
}

/// The text of a C array of characters, which ends with a zero byte.
private func text<Characters>(of characters: Characters) -> String {
  withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
}

extension Duration {
  /// Whole milliseconds, from 0 to 49 days.
  fileprivate var clientMilliseconds: UInt32 {
    UInt32(
      clamping: components.seconds.multipliedReportingOverflow(by: 1000).partialValue
        + components.attoseconds / 1_000_000_000_000_000)
  }
}

extension Report {
  /// Calls `body` with the report as the C client takes it.
  fileprivate func withClientData(_ body: (UnsafePointer<prism_report_data>) -> prism_result) -> prism_result {
    withOptionalCStrings(namespace.text, type.text, id?.text, nil) { namespace, type, id, _ in
      (meta.bytes + [0]).withUnsafeBytes { meta in
        (payload ?? []).withUnsafeBytes { bytes in
          var data = prism_report_data()
          data.size = MemoryLayout<prism_report_data>.size
          (data.name_space, data.type, data.report_id) = (namespace, type, id)
          data.meta = meta.baseAddress?.assumingMemoryBound(to: CChar.self)
          // An empty payload has no address, and is one all the same.
          data.payload = payload == nil ? nil : bytes.baseAddress ?? meta.baseAddress
          data.payload_bytes = bytes.count
          data.created_ms = createdTime ?? 0
          return body(&data)
        }
      }
    }
  }
}

/// Calls `body` with C strings; nil for what is nil.
private func withOptionalCStrings<Result>(
  _ first: String?, _ second: String?, _ third: String?, _ fourth: String?,
  _ body: (UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafePointer<CChar>?, UnsafePointer<CChar>?) -> Result
) -> Result {
  func with(_ text: String?, _ body: (UnsafePointer<CChar>?) -> Result) -> Result {
    text.map { $0.withCString { body($0) } } ?? body(nil)
  }
  return with(first) { first in
    with(second) { second in with(third) { third in with(fourth) { body(first, second, third, $0) } } }
  }
}

/// A handle that reports to one namespace; see `SpooledClient.namespace`.
public struct NamespaceReporter: Sendable {
  let client: SpooledClient
  /// The namespace of its reports.
  public let name: NamespaceName

  /// Whether the daemon takes reports of `type`, from memory: it never waits. The daemon sends each change. Before its first
  /// answer it is true; while the daemon is away the last known answer counts.
  public func isGather(_ type: ReportType) -> Bool { client.watches.settings(of: name).last?.takes(type) ?? true }

  /// The switches of the namespace: as they are, and again after each change, also of the remote configuration. It ends with the
  /// client. A reader that is late gets the newest state.
  ///
  ///     for await settings in shop.settings { sampler.isOn = settings.takes(ReportType("sample")!) }
  public var settings: AsyncStream<NamespaceSwitches> { client.watches.settings(of: name).follow() }

  /// Reports without waiting.
  @discardableResult
  public func send(_ type: ReportType, meta: JSONValue, payload: [UInt8]? = nil) -> SpooledAnswer {
    client.send(Report(type, in: name, meta: meta, payload: payload))
  }

  /// Reports, and waits for the daemon's answer until the deadline.
  public func report(
    _ type: ReportType, meta: JSONValue, payload: [UInt8]? = nil, within deadline: Duration
  ) async -> SpooledAnswer {
    await client.report(Report(type, in: name, meta: meta, payload: payload), within: deadline)
  }
}
