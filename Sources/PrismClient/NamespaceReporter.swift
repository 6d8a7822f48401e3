public import PrismProtocol

/// A handle that reports to one namespace; see `SpooledClient.namespace`.
public struct NamespaceReporter: Sendable {
  let client: SpooledClient
  /// The namespace of its reports.
  public let name: NamespaceName

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
