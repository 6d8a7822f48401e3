/// The facts that a store has about one sender's stream of packets.
struct DeviceStream: Sendable, Equatable {
  var device: String, namespace: String, kind: String
  var packets: Int
  /// When its last packet came, milliseconds since 1970, of the collector's clock.
  var receivedTime: Int64
  /// The newest `Prism-Ledger`.
  var ledger: String?
}
