import PrismHTTP
import PrismPacket
import PrismProtocol

/// Decides about a sender's request by its head, before its body is read: a stranger's body costs nothing.
struct HeadCheck: Sendable {
  /// Of a probe, and of an enrollment.
  private static let questionBytesMax = 65_536

  let collector: Collector

  func admit(_ request: HTTPRequest) -> HTTPAdmission {
    do throws(CollectorRefusal) {
      if request.method == .post, let kind = RowKind.all.first(where: { $0.path == request.path }) {
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
      collector.refusals.add(.init(refusal: error, from: request.peer.address, sender: nil))
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
