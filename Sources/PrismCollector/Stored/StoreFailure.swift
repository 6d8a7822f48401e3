import PrismPacket
import PrismProtocol

/// Why a store did not do as it was asked.
package enum StoreFailure: Error, Equatable, CustomStringConvertible {
  /// The next try may succeed. The outcome of a `take` is not known.
  case unavailable(String)
  /// The store can't hold what it was given, now or later: 422.
  case rejected(String)

  /// The database's own words, in one line.
  package var description: String {
    switch self {
    case .unavailable(let cause), .rejected(let cause): cause
    }
  }
}

/// A sender's line of packets: each names the one before it.
struct StreamID: Hashable, Sendable, Comparable {
  var device: String
  var namespace: NamespaceName
  var kind: RowKind

  init(device: String, namespace: NamespaceName, kind: RowKind) {
    (self.device, self.namespace, self.kind) = (device, namespace, kind)
  }
  init(_ context: PacketContext) {
    (device, namespace, kind) = (context.deviceID, context.namespace, context.kind)
  }

  /// The packets of records of the device that asks.
  init(_ question: DownQuestion) {
    (device, namespace, kind) = (question.deviceID, question.namespace, .records)
  }

  static func < (a: Self, b: Self) -> Bool {
    (a.device, a.namespace.text, a.kind.name) < (b.device, b.namespace.text, b.kind.name)
  }
}
