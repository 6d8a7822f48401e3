public import PrismProtocol

/// One thing to tell the daemon (docs/ingest-protocol.md).
public struct Report: Sendable, Equatable {
  /// The namespace, `prism` by default.
  public var namespace: NamespaceName
  /// The type; the namespace's `monitorList` must have it.
  public var type: ReportType
  /// A JSON object, not empty; at most 10,240 bytes once merged with the common information.
  public var meta: JSONValue
  /// At most the namespace's `maxBodyMByte`; empty is a payload of zero bytes.
  public var payload: [UInt8]?
  /// With an id, a report whose answer was lost is sent again by itself and stored once all the same. Without one the
  /// daemon makes an id, and a lost answer is an error that leaves open whether it was stored.
  public var id: ReportID?
  /// Milliseconds since 1970; nil: when the daemon takes it.
  public var createdTime: Int64?

  public init(
    _ type: ReportType, in namespace: NamespaceName = .prism, meta: JSONValue, payload: [UInt8]? = nil,
    id: ReportID? = nil, createdTime: Int64? = nil
  ) {
    (self.type, self.namespace, self.meta) = (type, namespace, meta)
    (self.payload, self.id, self.createdTime) = (payload, id, createdTime)
  }

  /// The request as it goes over the socket: its line, and the payload's bytes behind it.
  public var requestBytes: [UInt8] {
    var members: [JSONValue.Member] = [
      .init("namespace", .string(namespace.text)), .init("type", .string(type.text)), .init("meta", meta),
    ]
    if let id { members.append(.init("reportId", .string(id.text))) }
    if let createdTime { members.append(.init("createdTime", .int(createdTime))) }
    if let payload { members.append(.init("payloadBytes", .int(payload.count))) }
    return JSONValue.object(members).bytes + [UInt8(ascii: "\n")] + (payload ?? [])
  }
}
