import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol

/// How a namespace's pipeline hands packets to a carrier, and takes their receipts back.
enum PipelineCarrying {
  /// Takes packets of this kind instead of the collector; nil: they go over the network. Changes of records always do: their
  /// answer is more than a receipt.
  static func carrier(_ pipeline: isolated NamespacePipeline, _ kind: RowKind) -> Carrier? {
    kind.isReport ? pipeline.carrier : nil
  }

  /// Packets go to `carrier` from now on, until `end`.
  /// - Returns: the gate that keeps all of them; nil: it has begun.
  static func begin(_ pipeline: isolated NamespacePipeline, to carrier: Carrier) -> ShutGate? {
    guard pipeline.carrier == nil else { return ShutGate(.stopping, "another `prismctl carry` writes its packets") }
    pipeline.carrier = carrier
    if case .shut(let gate) = pipeline.gates(.meta).verdict {
      pipeline.carrier = nil
      return gate
    }
    for kind in RowKind.reports {
      pipeline.tell(kind, .carry(.begins))
      drain(pipeline, kind)
    }
    return nil
  }

  /// Whether all that may leave is in files. An attempt over the network that failed meanwhile is no reason to wait.
  static func hasAll(_ pipeline: isolated NamespacePipeline) -> Bool {
    for kind in RowKind.reports {
      let delivery = pipeline.deliveries[kind]
      let isDone = delivery.drain == nil && delivery.storeWork == nil && delivery.queue.hasCarriedAll
      guard !isDone, case .open = pipeline.gates(kind).verdict else { continue }
      drain(pipeline, kind)
      return false
    }
    return true
  }

  private static func drain(_ pipeline: isolated NamespacePipeline, _ kind: RowKind) {
    pipeline.tell(kind, .upload(.trigger(.newCollector, tryAt: pipeline.now)))
    pipeline.tell(kind, .upload(.wanted))
  }

  /// More wait than may be out.
  static func isFull(_ pipeline: isolated NamespacePipeline) -> Bool {
    RowKind.reports.contains { pipeline.deliveries[$0].queue.isCarryFull }
  }

  /// Carried packets may be sent again from now on, if there is a network.
  static func end(_ pipeline: isolated NamespacePipeline) {
    pipeline.carrier = nil
    for kind in RowKind.reports {
      pipeline.tell(kind, .carry(.ends))
      // A pause that the collector asked for holds on.
      let delivery = pipeline.deliveries[kind]
      if delivery.drain == nil { pipeline.tell(kind, .restored(delivery.retry)) }
    }
    pipeline.requestUpload(.rows)
    pipeline.arm()
  }

  // MARK: Receipts

  /// Whether the packets in flight are known; if not, they are being read.
  static func isReadyToSettle(_ pipeline: isolated NamespacePipeline, _ kind: RowKind) -> Bool {
    guard !pipeline.deliveries[kind].queue.isRecovered else { return true }
    pipeline.tell(kind, .carry(.recovery))
    return false
  }

  /// Takes an answer that came back in a file. Its receipt is checked as if it had come over the network.
  static func returned(_ pipeline: isolated NamespacePipeline, _ answer: CarriedAnswer) -> CarriedState {
    let headers = answer.headers
    guard pipeline.deliveries[headers.kind].queue[headers.packetID] != nil else { return .unknown }
    let settings = pipeline.settings
    guard let configuration = settings.configuration, let key = settings.key, key.id == headers.format.keyID else {
      return .kept("it is of key \(headers.format.keyID), which the namespace does not have any more")
    }
    let post = PostAnswer(
      outcome: .response(
        status: answer.status, headers: answer.proof,
        body: Array(answer.body.utf8)), mayHaveLeft: true, bytesSent: 0, bytesReceived: 0, duration: .zero)
    let check = ReceiptCheck(headers, key: key.secret, configuration)
    let outcome = DeliveryOutcome(post, to: check, now: pipeline.parts.time.unixMilliseconds)
    pipeline.tell(headers.kind, .carry(.returned(headers.packetID, outcome)))
    let isHere = pipeline.deliveries[headers.kind].queue[headers.packetID] != nil
    return CarriedState(outcome.verdict, isHere: isHere, rows: headers.itemCount)
  }

  /// Whether the changes of `returned` are in the store.
  static func hasSettled(_ pipeline: isolated NamespacePipeline, _ kind: RowKind) -> Bool {
    let delivery = pipeline.deliveries[kind]
    return delivery.queue.dispositions.isEmpty && delivery.storeWork == nil
  }
}
