import PrismBase
import PrismHTTP
import PrismPacket
import PrismProtocol

/// The headers of a packet's POST (docs/packet.md, "The POST").
struct Delivery: Sendable {
  /// Rows of a packet.
  static let itemsMax = 10_000

  /// A clock that differs by no more than this is taken to be right: a packet may be on its way for so long.
  static let clockToleranceMilliseconds: Int64 = 60_000

  let headers: PacketHeaders
  let mac: String?
  /// Milliseconds to add to the device's times: its clock was so far behind when it sent the packet.
  let clockCorrection: Int64
  /// It came from its device, which is held to its limits.
  let isLimited: Bool

  var context: PacketContext {
    PacketContext(
      deviceID: headers.deviceID, namespace: headers.namespace, packetID: headers.packetID, kind: headers.kind)
  }
  var cipher: Cipher { headers.format.cipher }
  var keyID: String { headers.format.keyID }
  var dependsOn: PacketID? { headers.dependsOn }
  /// Its sender has no receipt yet for a packet before it, and will send that one again if it has to: this packet is never
  /// taken without its predecessor.
  var hasPendingPredecessor: Bool { headers.dependsOn != nil && headers.pendingCount > 0 }
  var itemCount: Int { headers.itemCount }
  /// The store that gave the sender's last receipt; nil: the sender does not say.
  var acceptingStore: StoreMark? { StoreMark(ofLedger: headers.ledger) }
  /// The sender's accounts, with how many rows the packet has.
  var ledger: String? { headers.ledger.isEmpty ? nil : "\(headers.ledger);carried=\(itemCount)" }

  /// - Parameter now: when the packet came; milliseconds since 1970. nil for one that came in a file, whenever that was
  ///   written: nothing is known of its device's clock.
  /// - Throws: 503 for another version: each version of the daemon sends the packet again. 400 naming the header that is missing
  ///   or wrong; 415 for another content type.
  init(_ request: HTTPRequest, kind: RowKind, now: Int64?) throws(CollectorRefusal) {
    guard request.header("content-type") == kind.contentType else {
      throw CollectorRefusal(415, code: .contentType, "Content-Type must be \(kind.contentType)")
    }
    guard request.headers("prism-version") == [PacketHeaders.version] else {
      throw CollectorRefusal(503, code: .version, Self.versionMessage(request.header("prism-version")))
    }
    do throws(PacketHeaderFault) { headers = try PacketHeaders(kind: kind) { request.headers($0) } } catch {
      throw CollectorRefusal(400, code: .header, error.description)
    }
    guard headers.namespace != .audit else {
      throw CollectorRefusal(403, "the collector alone writes to the namespace \(NamespaceName.audit)")
    }
    guard headers.itemCount <= Self.itemsMax else {
      throw CollectorRefusal(
        413, code: .tooLarge,
        "the packet is too large: it has \(headers.itemCount) rows; at most \(Self.itemsMax) are taken")
    }
    mac = request.header("prism-mac")
    (clockCorrection, isLimited) = (Self.correction(sentTime: headers.sentTime, now: now), now != nil)
  }

  /// Of a packet that the collector makes itself.
  init(own headers: PacketHeaders) { (self.headers, mac, clockCorrection, isLimited) = (headers, nil, 0, false) }

  private static func correction(sentTime: Int64?, now: Int64?) -> Int64 {
    guard let sentTime, let now else { return 0 }
    let behind = now.subtractingReportingOverflow(sentTime).partialValue
    return behind.magnitude > UInt64(clockToleranceMilliseconds) ? behind : 0
  }

  private static func versionMessage(_ version: String?) -> String {
    let reason = version == "1" ? "; version 1 does not protect its headers, and no released prismd speaks it" : ""
    return "Prism-Version must be \(PacketHeaders.version)\(reason)"
  }
}

extension HTTPRequest {
  /// The time at which the head came, by the wall clock as it is now: on a slow link the body takes minutes. Milliseconds
  /// since 1970.
  func arrivalTime(by time: any TimeSource) -> Int64 {
    guard let headTime else { return time.unixMilliseconds }
    return time.unixMilliseconds - Int64((time.uptime - headTime) / .milliseconds(1))
  }
}

/// Decides about a sender's request by its head, before its body is read: a stranger's body costs nothing.
struct HeadCheck: Sendable {
  /// Of a probe, and of an enrollment.
  private static let questionBytesMax = 65_536

  let collector: Collector

  func admit(_ request: HTTPRequest) -> HTTPAdmission {
    do throws(CollectorRefusal) {
      if case .success((.packet(let kind), _)) = SenderRoute.table.find(request.method, request.path) {
        return .take(isProven: try admitPacket(request, kind))
      }
      try checkBody(request)
      return .take(isProven: collector.access.provesNow(request))
    } catch { return .refuse(error.response) }
  }

  /// - Returns: whether its token proves the sender.
  private func admitPacket(_ request: HTTPRequest, _ kind: RowKind) throws(CollectorRefusal) -> Bool {
    do throws(CollectorRefusal) {
      let isProven = try collector.access.checkSenderNow(request)
      let delivery = try Delivery(request, kind: kind, now: nil)
      try collector.devices.check(delivery.context.deviceID)
      try collector.openers.keys.check(delivery.keyID, for: delivery.context.namespace)
      return isProven
    } catch {
      var refusal = error
      collector.counts.count(nil, outcome: "refused_\(error.status)", cause: error.cause, bytes: 0)
      collector.refusals.add(error, from: request.peer.address)
      refusal.packetID = request.header("prism-packet-id").flatMap { PacketID($0) }
      throw refusal
    }
  }

  /// - Throws: 413 for a body that no question has.
  private func checkBody(_ request: HTTPRequest) throws(CollectorRefusal) {
    let bytes = request.header("content-length").map { Int($0) ?? .max } ?? 0
    guard bytes <= Self.questionBytesMax, request.header("transfer-encoding") == nil else {
      throw CollectorRefusal(413, "a body at this path has a Content-Length of at most \(Self.questionBytesMax) bytes")
    }
  }
}
