public import PrismProtocol

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
