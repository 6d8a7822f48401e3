import PrismBase
import PrismProtocol

extension Delivery.Message {
  /// Writes it, once for as long as the fault lasts.
  func write(to log: Logger, _ namespace: NamespaceName, _ kind: RowKind) {
    let upload = "upload.\(namespace).\(kind.name)"
    switch self {
    case .deadLetter(let status):
      log.fault(
        "dead.\(namespace).\(kind.name)",
        "the collector can't take a report: it is a dead letter (prismctl dead list)",
        ["namespace": namespace.text, "kind": kind.name, "status": String(status)])
    case .notDelivered(let cause):
      log.fault(
        upload, "not delivered; tried again with growing pauses",
        ["namespace": namespace.text, "kind": kind.name, "cause": cause])
    case .deliveredAgain: log.faultEnded(upload, "delivered again", ["namespace": namespace.text])
    }
  }
}
