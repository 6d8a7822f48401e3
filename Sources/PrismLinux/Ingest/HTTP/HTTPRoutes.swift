import PrismAdmission
import PrismBase
import PrismInputs
import PrismPacket
import PrismProtocol

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

  /// - Returns: the request without its body; nil if it is not for another input.
  func inputRequest(_ head: HTTPHead) -> InputRequest? {
    guard let input, input.paths.contains(head.path) else { return nil }
    return InputRequest(
      path: head.path, contentType: head.contentType, packing: PacketEncoding(rawValue: head.contentEncoding) ?? .none)
  }

  /// Judges a request by its head. - Throws: the refusal.
  func check(_ head: HTTPHead, _ request: InputRequest?) throws(HTTPHead.Fault) {
    if isAlone, !Self.isLocal(head.host) {
      throw HTTPHead.Fault(421, "the header Host must be localhost or an address of loopback")
    }
    guard let request else { return try checkOwn(head) }
    guard head.method == "POST" else { throw HTTPHead.Fault(405, "\(head.path) takes POST") }
    guard request.isPacked || head.contentEncoding == "identity" else {
      throw HTTPHead.Fault(415, "the Content-Encoding must be gzip or zstd")
    }
    if let (status, message) = input?.refusal(of: request) { throw HTTPHead.Fault(status, message) }
  }

  private func checkOwn(_ head: HTTPHead) throws(HTTPHead.Fault) {
    let (reports, limits, common) = (HTTPExchange.reports, HTTPExchange.limits, HTTPExchange.common)
    if isAlone { throw HTTPHead.Fault(404, "there are POST \((input?.paths ?? []).joined(separator: ", POST "))") }
    if RecordRoute.takes(head.path) { return }
    guard head.contentEncoding == "identity" else { throw HTTPHead.Fault(415, "bodies are not taken compressed") }
    switch (head.path, head.method) {
    case (reports, "POST"), (limits, "GET"), (common, "GET"): return
    case (reports, _): throw HTTPHead.Fault(405, "\(reports) takes POST")
    case (limits, _), (common, _): throw HTTPHead.Fault(405, "\(head.path) takes GET")
    default:
      let others = (input?.paths ?? []).map { ", POST \($0)" }.joined()
      throw HTTPHead.Fault(
        404, "there are POST \(reports), GET \(limits), GET \(common), \(RecordRoute.prefix)…\(others)")
    }
  }

  /// A page of a browser that made its own name point to loopback sends that name.
  private static func isLocal(_ host: String) -> Bool {
    guard let (name, _) = HostAndPort.split(host) else { return false }
    return HostAndPort.isLoopback(name)
  }
}
