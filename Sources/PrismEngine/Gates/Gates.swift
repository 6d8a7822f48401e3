import PrismConfig
import PrismProtocol
import PrismStore

/// Whether reports of a namespace and kind may leave now: one pure function of configuration, network, budget, backoff
/// and time, asked by the pipeline before every packet and by `prismctl explain`.
struct Gates: Sendable {
  var settings: PipelineSettings
  var kind: RowKind
  var network: NetworkStatus
  var flow: FlowWindow
  /// nil if there is no pause, or if this upload is just ending it.
  var pause: UploadState.Pause?
  var lastFailure: RetryRecord.Failure?
  var circuit: Circuit
  var isStopping: Bool
  /// Reports of this namespace and kind that are still to be brought over; nil if no report is waited for.
  var awaited: Int?
  var now: Instant
  /// Packets go into files: neither the network nor a pause keeps them, and they cost no traffic.
  var isCarrying = false
  /// The most blocks of the namespace's key, if it has encrypted them; nil: it may encrypt more.
  var usedUpKeyBlocks: Int?

  enum Verdict: Sendable, Equatable {
    /// Rows of these types may leave.
    case open(Claim.TypeFilter)
    case shut(ShutGate)
  }

  /// For the whole of the kind.
  var verdict: Verdict {
    if let shut = configurationGate ?? salvageGate { return .shut(shut) }
    if !isCarrying, let shut = networkGate ?? retryGate { return .shut(shut) }
    if kind.hasPayload { return .open(.only(isMetered ? settings.meteredPayloadTypes : settings.payloadTypes)) }
    let wifiOnly = settings.wifiOnlyTypes(kind)
    return .open(isMetered && !wifiOnly.isEmpty ? .except(wifiOnly) : .all)
  }

  /// Nothing but a failure of the last try keeps rows back.
  var mayTry: Bool { configurationGate == nil && salvageGate == nil && networkGate == nil }

  /// The rest of the budget; nil if traffic costs nothing.
  var flowRestBytes: Int? {
    guard isMetered else { return nil }
    return max(0, (settings.configuration?.maxFlowBytes ?? 0) - window.usedBytes)
  }

  /// Traffic costs on the way to this namespace's collector.
  var isMetered: Bool { !isCarrying && network.kind == .metered && settings.collector?.isLoopback != true }

  private var window: FlowWindow {
    var window = flow
    window.roll(now)
    return window
  }

  private var configurationGate: ShutGate? {
    if isStopping { return ShutGate(.stopping, "the daemon is stopping; the rest is sent after its next start") }
    guard let configuration = settings.configuration else {
      return ShutGate(.retired, "the namespace is not configured any more; its rows are sent when it comes back")
    }
    if settings.collector == nil && !isCarrying {
      return ShutGate(.url, "no url is configured: rows are stored and nothing is sent")
    }
    if !configuration.isUpload { return ShutGate(.isUpload, "isUpload is off in the configuration") }
    if settings.key == nil { return ShutGate(.key, "the daemon has no key of this keyId") }
    if let key = settings.key, let blocks = usedUpKeyBlocks {
      let text = KeyUse.usedUpText(id: key.id, blocksMax: blocks)
      return ShutGate(.key, "\(text): \(KeyUse.advice(id: key.id))")
    }
    if kind.hasPayload && settings.payloadTypes.isEmpty {
      return ShutGate(.isUploadPayload, "no type of the monitor list has isUploadPayload")
    }
    return nil
  }

  private var salvageGate: ShutGate? {
    guard let awaited else { return nil }
    let count = awaited > 0 ? "\(awaited) older reports" : "older reports"
    return ShutGate(
      .salvage, "\(count) are being brought over from a database that was set aside; newer ones must not overtake them")
  }

  private var networkGate: ShutGate? {
    if settings.collector?.isLoopback == true { return nil }
    switch network.kind {
    case .unmetered: return nil
    case .none: return ShutGate(.network, "there is no network: \(network.reason)")
    case .metered:
      let allowed = settings.configuration?.maxFlowBytes ?? 0
      let needed = max(1, window.neededBytes)
      guard window.usedBytes > allowed - needed else { return nil }
      return ShutGate(
        .flow,
        "\(window.usedBytes) bytes of maxFlowMByte's \(allowed) are used on metered networks"
          + (needed > 1 ? "; the next packet needs \(needed)" : ""),
        opensIn: window.remaining(now))
    }
  }

  private var retryGate: ShutGate? {
    if let pause, pause.until > now.uptime {
      let cause = lastFailure.map { "; the last try: \($0.cause)" } ?? ""
      return ShutGate(.backoff, pause.reason.words + cause, opensIn: pause.until - now.uptime)
    }
    guard circuit.allows(kind) else {
      return ShutGate(.circuit, "after \(circuit.failuresInRow) failures in a row one probe at a time is sent")
    }
    return nil
  }

  /// Of rows of a type or a table on their way to the collector.
  private func wayGate(_ name: String, isWifiOnly: Bool) -> ShutGate? {
    guard isMetered, isWifiOnly, networkGate?.gate != .network else { return networkGate ?? retryGate }
    return ShutGate(.onlyWifi, "\(name) has onlyWifi, and the network is metered: \(network.reason)")
  }

  /// Why rows of `type` are not leaving, though they may be waiting; nil when they are on their way.
  /// - Parameter due: when the next upload is; nil if no upload is requested.
  /// - Parameter isSpaced: the metered interval holds it back.
  func shutGate(for type: ReportType, due: Duration?, isSpaced: Bool) -> ShutGate? {
    if let shut = configurationGate ?? salvageGate { return shut }
    if kind.hasPayload && !settings.payloadTypes.contains(type) {
      return ShutGate(.isUploadPayload, "isUploadPayload is off for \(type) in the monitor list")
    }
    if let shut = wayGate(type.text, isWifiOnly: settings.wifiOnlyTypes.contains(type)) { return shut }
    guard let due, due > now.uptime else { return nil }
    let wait = due - now.uptime
    return isSpaced
      ? ShutGate(.meteredInterval, "on metered networks uploads are merged", opensIn: wait)
      : ShutGate(.timer, "the next upload of this namespace is due by its timer", opensIn: wait)
  }

  // MARK: Records

  /// Why changes of a table are not leaving; nil when they are on their way. Of `RowKind.records`.
  /// - Parameter due: when the next synchronization is; nil if it is under way, or no change waits.
  func shutGate(for table: RecordTableName, due: Duration?) -> ShutGate? {
    if let configuration = settings.configuration, !configuration.tables.contains(where: { $0.name == table }) {
      return ShutGate(.table, "the table is not in `records` any more; its changes are sent when it is declared again")
    }
    if let shut = configurationGate ?? salvageGate { return shut }
    let isWifiOnly = ReportType(table.text).map(settings.wifiOnlyTables.contains) ?? false
    if let shut = wayGate(table.text, isWifiOnly: isWifiOnly) { return shut }
    guard let due, due > now.uptime else { return nil }
    return ShutGate(
      .recordInterval, "the next synchronization of this namespace is due by its interval", opensIn: due - now.uptime)
  }
}

extension UploadState.Pause.Reason {
  var words: String {
    switch self {
    case .failure: "a pause after a failure"
    case .held: "held by a fault of configuration; a reload tries at once"
    case .asked: "the last answer asked for a pause (Retry-After)"
    case .store: "the store failed"
    }
  }
}
