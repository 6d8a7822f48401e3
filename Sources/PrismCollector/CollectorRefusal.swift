import PrismHTTP
import PrismPacket
import PrismProtocol

/// Why a POST is not taken: the answer's status, its code for the sender, and what the sender's operator reads.
struct CollectorRefusal: Error, Sendable, Equatable {
  let status: Int
  let code: PacketRefusal?
  let message: String
  var retryAfterSeconds: Int?
  /// Of a 405: the methods of the path.
  private var allow: String?
  var missing: PacketID?
  /// The packet that is refused. A sender believes a refusal that names its packet at once.
  var packetID: PacketID?
  /// This clock, for a sender whose own one may be behind; milliseconds since 1970.
  var unixMilliseconds: Int64?
  /// The place of the change that is at fault among those of its transaction, from 0.
  var place: Int?
  /// The sender of the packet, if the decryption proved it.
  var sender: PacketContext?

  /// `Prism-Verdict`: proves that this collector refused that packet; nil if its sender is not proven.
  var verdict: String?

  /// A word of this program's own: a label and a log field.
  var cause: String { code?.rawValue ?? "status\(status)" }

  init(_ status: Int, code: PacketRefusal? = nil, _ message: String, retryAfterSeconds: Int? = nil) {
    (self.status, self.code, self.message, self.retryAfterSeconds) = (status, code, message, retryAfterSeconds)
  }

  /// A sender asks again after an hour at the latest, so that a mended limit is noticed. Jitter of a quarter: many that get
  /// the same time come back at different ones.
  init(_ status: Int, _ message: String, retryAfter wait: Duration) {
    let seconds = min(wait / .seconds(1), 3600) * (1 + Double.random(in: 0...0.25))
    self.init(status, message, retryAfterSeconds: max(1, Int(seconds.rounded(.up))))
  }

  /// The packet itself is refused, now and later. Without proof of its sender a stranger could name any packet. One that is
  /// too old (410) is noted by `PacketQueue`.
  var isForGood: Bool {
    guard sender != nil else { return false }
    return switch status {
    case 413: true
    case 400, 415, 422: code != .unknownDictionary && code?.isOfConfiguration != true
    default: false
    }
  }

  var text: String {
    var members = [JSONValue.Member("message", .string(message))]
    if let code { members.append(.init("code", .string(code.rawValue))) }
    if let unixMilliseconds { members.append(.init("time", .int(Int(unixMilliseconds)))) }
    if let packetID { members.append(.init("packetId", .string(packetID.description))) }
    return JSONValue.object(members).text + "\n"
  }

  /// - Parameter sender: the decryption proved it.
  func of(_ sender: PacketContext) -> CollectorRefusal {
    var refusal = self
    refusal.sender = sender
    return refusal
  }

  init(_ miss: RouteMiss) {
    self.init(miss.status, miss.message)
    allow = miss.allow
  }

  /// - Parameter names: of all that there are.
  static func unknown(_ what: String, among names: [String]) -> CollectorRefusal {
    let known = names.isEmpty ? "none" : names.joined(separator: ", ")
    return CollectorRefusal(404, "there is no \(what) of this name; there are: \(known)")
  }

  /// Headers of every kind of answer.
  var headers: [(name: String, value: String)] {
    [("Retry-After", retryAfterSeconds.map { String($0) }), ("Allow", allow)].compactMap { name, value in
      value.map { (name, $0) }
    }
  }

  var response: HTTPResponse {
    var headers = headers
    if let missing { headers.append((name: "Prism-Missing", value: missing.description)) }
    if let verdict { headers.append((name: "Prism-Verdict", value: verdict)) }
    return HTTPResponse(status: status, contentType: "application/json", headers: headers, text: text)
  }

  /// - Parameter cause: what the database says.
  static func unavailable(_ cause: String) -> CollectorRefusal {
    CollectorRefusal(503, "the collector's database can't be used: \(cause)", retryAfterSeconds: 5)
  }

  static let unreadable = CollectorRefusal(503, "the collector's database can't be read", retryAfterSeconds: 5)

  static let noMemory = CollectorRefusal(503, "too many packets wait for memory; try again", retryAfterSeconds: 1)

  /// Of a packet that can't be opened.
  init(_ error: PacketError) {
    guard let code = PacketRefusal(rawValue: error.rawValue) else {
      self.init(503, "the packet could not be opened; try again", retryAfterSeconds: 5)
      return
    }
    if code == .tooLarge {
      self.init(413, code: code, "the packet is too large: a row or all of them together")
    } else {
      self.init(400, code: code, "\(code.rawValue): the body is no packet of these headers and this key")
    }
  }

  /// The refusal as problem details (RFC 9457), for the API's clients.
  var problem: HTTPResponse {
    let body: JSONValue = [
      "type": "about:blank", "title": .string(HTTPResponse.reason(status)), "status": .int(status),
      "detail": .string(message),
    ]
    return HTTPResponse(
      status: status, contentType: "application/problem+json", headers: headers, text: body.text + "\n")
  }
}
