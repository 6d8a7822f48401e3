import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol

/// Hands packets of one namespace to a carrier, and takes their receipts back. Its pipeline owns it, and calls it on its own turns
/// only.
final class CarryJob {
  private let host: PipelineHost
  /// Takes packets instead of the collector; nil: no user carries them.
  private(set) var carrier: Carrier?

  init(_ host: PipelineHost) { self.host = host }

  /// Takes packets of this kind instead of the collector; nil: they go over the network. Changes of records always do: their
  /// answer is more than a receipt.
  func carrier(_ kind: RowKind) -> Carrier? { kind.isReport ? carrier : nil }

  /// Packets go to `carrier` from now on, until `end`.
  /// - Returns: the gate that keeps all of them; nil: it has begun.
  func begin(to carrier: Carrier) -> ShutGate? {
    guard self.carrier == nil else { return ShutGate(.stopping, "another `prismctl carry` writes its packets") }
    self.carrier = carrier
    if case .shut(let gate) = host.gates(.meta).verdict {
      self.carrier = nil
      return gate
    }
    for kind in RowKind.reports {
      host.tell(kind, .carry(.begins))
      drain(kind)
    }
    return nil
  }

  /// Whether all that may leave is in files. An attempt over the network that failed meanwhile is no reason to wait.
  func hasAll() -> Bool {
    for kind in RowKind.reports {
      let delivery = host.delivery(kind)
      let isDone = delivery.drain == nil && delivery.storeWork == nil && delivery.queue.hasCarriedAll
      guard !isDone, case .open = host.gates(kind).verdict else { continue }
      drain(kind)
      return false
    }
    return true
  }

  private func drain(_ kind: RowKind) {
    host.tell(kind, .upload(.trigger(.newCollector, tryAt: host.parts.time.uptime)))
    host.tell(kind, .upload(.wanted))
  }

  /// More wait than may be out.
  func isFull() -> Bool {
    RowKind.reports.contains { host.delivery($0).queue.isCarryFull }
  }

  /// Carried packets may be sent again from now on, if there is a network.
  func end() {
    self.carrier = nil
    for kind in RowKind.reports {
      host.tell(kind, .carry(.ends))
      // A pause that the collector asked for holds on.
      let delivery = host.delivery(kind)
      if delivery.drain == nil { host.tell(kind, .restored(delivery.retry)) }
    }
    host.requestRows()
    host.arm()
  }

  // MARK: Receipts

  /// Whether the packets in flight are known; if not, they are being read.
  func isReadyToSettle(_ kind: RowKind) -> Bool {
    guard !host.delivery(kind).queue.isRecovered else { return true }
    host.tell(kind, .carry(.recovery))
    return false
  }

  /// Takes an answer that came back in a file. Its receipt is checked as if it had come over the network.
  func returned(_ answer: CarriedAnswer) -> CarriedState {
    let headers = answer.headers
    guard host.delivery(headers.kind).queue[headers.packetID] != nil else { return .unknown }
    let settings = host.settings()
    guard let configuration = settings.configuration, let key = settings.key, key.id == headers.format.keyID else {
      return .kept("it is of key \(headers.format.keyID), which the namespace does not have any more")
    }
    let post = PostAnswer(
      outcome: .response(
        status: answer.status, headers: answer.proof,
        body: Array(answer.body.utf8)), mayHaveLeft: true, bytesSent: 0, bytesReceived: 0, duration: .zero)
    let check = ReceiptCheck(headers, key: key.secret, configuration)
    let outcome = DeliveryOutcome(post, to: check, now: host.parts.time.unixMilliseconds)
    host.tell(headers.kind, .carry(.returned(headers.packetID, outcome)))
    let isHere = host.delivery(headers.kind).queue[headers.packetID] != nil
    return CarriedState(outcome.verdict, isHere: isHere, rows: headers.itemCount)
  }

  /// Whether the changes of `returned` are in the store.
  func hasSettled(_ kind: RowKind) -> Bool {
    let delivery = host.delivery(kind)
    return delivery.queue.dispositions.isEmpty && delivery.storeWork == nil
  }
}
