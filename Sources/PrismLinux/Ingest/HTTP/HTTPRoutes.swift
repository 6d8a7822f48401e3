import PrismAdmission
import PrismHTTP
import PrismInputs
import PrismPacket
import PrismProtocol

/// A request's subject on an HTTP connection.
enum IngestRoute {
  case reports, limits, common
  case record(RecordVerb)
  case input
}

/// The paths of an HTTP connection: those of the ingest socket, and those of another input.
struct HTTPRoutes {
  /// Answers its own paths.
  var input: OTLPInput?
  /// Only the other input's paths are there: the connection came over TCP.
  var isAlone = false

  /// A small body, its records as JSON, and the memory of each of them. A body that needs more is taken one at a
  /// time (`LargeTurns`).
  private static let growth = 8
  /// The reports of a large body are made in parts (`InputPart`).
  private static let partBytes = 2 * 1024 * 1024
  /// The usual growth of compressed bodies.
  private static let unpackedGrowth = 8

  /// Bytes of memory that are reserved for a request of another input in all. - Parameter isPacked: its body is compressed.
  static func memoryBytes(_ bodyBytes: Int, isPacked: Bool, _ rules: AdmissionRules) -> Int {
    let bytes = min(bodyBytes * growth, bodyBytes + partBytes) * (isPacked ? unpackedGrowth : 1)
    return min(bytes + Limits.lineBytesMax, rules.requestBytesMax)
  }

  /// The same where it must be asked for before the body is read: a turn's room is enough for less.
  static func requestBytes(_ bodyBytes: Int, isPacked: Bool, _ rules: AdmissionRules) -> Int {
    let bytes = memoryBytes(bodyBytes, isPacked: isPacked, rules)
    return bytes > PendingBudget.turnBytes / 2 ? bytes : 0
  }

  /// The same of a body that is here. One that went past its user's share holds more (`PendingBudget`).
  static func heldBytes(_ body: [UInt8], isPacked: Bool, _ rules: AdmissionRules) -> Int {
    max(memoryBytes(body.count, isPacked: isPacked, rules), body.count)
  }

  private static let inputs = OTLPSignal.allCases.map { RouteTable<IngestRoute>.Row(.post, $0.path, .input) }
  private static let own: [RouteTable<IngestRoute>.Row] = [
    .init(.post, "/v1/reports", .reports),
    .init(.get, "/v1/limits", .limits),
    .init(.get, "/v1/common", .common),
    .init(.get, "/v1/records/{table}", .record(.list)),
    .init(.get, "/v1/records/{table}/{+id}", .record(.get)),
    .init(.put, "/v1/records/{table}/{+id}", .record(.put)),
    .init(.patch, "/v1/records/{table}/{+id}", .record(.patch)),
    .init(.delete, "/v1/records/{table}/{+id}", .record(.delete)),
  ]
  private static let tables = (inputs: RouteTable(inputs), own: RouteTable(own), all: RouteTable(own + inputs))

  /// - Returns: the request without its body; nil if it is not for another input.
  func inputRequest(_ head: HTTPHead) -> InputRequest? {
    guard input != nil, OTLPSignal(path: head.path) != nil else { return nil }
    return InputRequest(
      path: head.path, contentType: head.contentType, packing: PacketEncoding(rawValue: head.contentEncoding) ?? .none)
  }

  /// Judges a request by its head. - Throws: the refusal.
  func find(
    _ head: HTTPHead, _ request: InputRequest?
  ) throws(HTTPHead.Fault) -> (route: IngestRoute, parts: [String]) {
    if isAlone, !HostCheck.isLocal(head.host) {
      throw HTTPHead.Fault(421, "the header Host must be localhost or an address of loopback")
    }
    let table = isAlone ? Self.tables.inputs : input == nil ? Self.tables.own : Self.tables.all
    let found = try table.find(.init(rawValue: head.method), head.path).mapError(HTTPHead.Fault.init).get()
    guard head.contentEncoding == "identity" || request?.isPacked == true else {
      let others = request == nil ? "bodies are not taken compressed" : "the Content-Encoding must be gzip or zstd"
      throw HTTPHead.Fault(415, others)
    }
    if let request, let (status, message) = input?.refusal(of: request) { throw HTTPHead.Fault(status, message) }
    return found
  }
}
