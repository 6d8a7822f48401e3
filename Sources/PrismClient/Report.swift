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

/// The daemon's answer to one report.
public enum ReportAnswer: Sendable, Equatable {
  /// On disk, as the daemon's `durability` says. `isDuplicate`: it was there already under this id.
  /// `isPayloadLeftOut`: without its payload, since its type has no `isUploadPayload`, or the payload is too large.
  case stored(reportID: String, isDuplicate: Bool, isPayloadLeftOut: Bool = false)
  /// Left out by the `sample` of its type: there is nothing to send again.
  case sampled
  /// Not stored; the code says whether sending it again makes sense.
  case refused(Refusal)

  /// - Throws: `protocolViolation` for a line that is no answer of the mode `each`.
  init(parsing line: [UInt8]) throws(ClientError) {
    guard let value = try? JSONValue(parsing: line), let status = value["status"]?.string else {
      throw .protocolViolation("an answer without a status")
    }
    if status == "stored", let id = value["reportId"]?.string {
      self = .stored(
        reportID: id, isDuplicate: value["duplicate"]?.bool ?? false,
        isPayloadLeftOut: value["payloadLeftOut"]?.bool ?? false)
    } else if status == "sampled" {
      self = .sampled
    } else if let refusal = Refusal(value) {
      self = .refused(refusal)
    } else {
      throw .protocolViolation("an answer that is neither stored nor sampled nor refused")
    }
  }
}

extension Refusal {
  /// The members `code`, `message` and `retryMs` of an answer; a code that this version does not know is `internal`.
  init?(_ value: JSONValue) {
    guard let code = value["code"]?.string else { return nil }
    self.init(code: code, message: value["message"]?.string ?? "", retryMilliseconds: value["retryMs"]?.int)
  }

  init(code: String, message: String, retryMilliseconds: Int?) {
    let known = RefusalCode(rawValue: code)
    self.init(
      known ?? .internal, known == nil ? "\(code): \(message)" : message, retryMilliseconds: retryMilliseconds)
  }
}

/// The result of reports that were sent in the mode `cumulative`.
public struct BulkOutcome: Sendable, Equatable {
  /// Reports that were dealt with: stored, refused or left out.
  public private(set) var answered = 0
  /// Reports that the operator's `sample` left out (docs/filters.md).
  public private(set) var sampledOut = 0
  /// By code.
  public private(set) var refused: [RefusalCode: Int] = [:]
  /// The first of each code, for people: its number in the stream, from 1, and the daemon's message.
  public private(set) var examples: [RefusalCode: (sequence: Int, message: String)] = [:]

  /// Reports that were stored.
  public var stored: Int { answered - sampledOut - refused.values.reduce(0, +) }

  mutating func take(_ line: [UInt8]) throws(ClientError) {
    guard let value = try? JSONValue(parsing: line), let acked = value["acked"]?.int, acked >= answered else {
      throw .protocolViolation("an answer without `acked`")
    }
    answered = acked
    sampledOut += value["sampled"]?.int ?? 0
    for entry in value["refused"]?.array ?? [] {
      guard let refusal = Refusal(entry) else { throw .protocolViolation("a refusal without a code") }
      refused[refusal.code, default: 0] += 1
      if examples[refusal.code] == nil { examples[refusal.code] = (entry["seq"]?.int ?? 0, refusal.message) }
    }
  }

  public static func == (a: Self, b: Self) -> Bool {
    a.answered == b.answered && a.sampledOut == b.sampledOut && a.refused == b.refused
  }
}

/// Why a client could not have its reports answered.
public enum ClientError: Error, Equatable, Sendable, CustomStringConvertible {
  /// No program listens on the socket.
  case unreachable(socket: String, errno: Int32)
  /// The daemon went away. `mayBeStored`: a report without an id was sent and its answer is missing.
  case connectionLost(socket: String, mayBeStored: Bool)
  /// No answer came in time.
  case timedOut(socket: String)
  /// The daemon takes no reports over this connection: it has too many (`busy`), or the greeting is invalid.
  case refused(socket: String, Refusal)
  case protocolViolation(String)

  public var description: String {
    switch self {
    case .unreachable(let socket, let code):
      "\(socket): no program answers (errno \(code)); is prismd running, and may you open the socket? See `systemctl status prismd`"
    case .connectionLost(let socket, let mayBeStored):
      "\(socket): the daemon closed the connection"
        + (mayBeStored ? "; whether the last reports were stored is open: give them ids to send them again safely" : "")
    case .timedOut(let socket): "\(socket): no answer in time; `prismctl status` shows whether the daemon is behind"
    case .refused(let socket, let refusal):
      "\(socket): the connection is refused: \(refusal.code.rawValue): \(refusal.message)"
    case .protocolViolation(let what): "the daemon's answer is not of this protocol: \(what)"
    }
  }
}
