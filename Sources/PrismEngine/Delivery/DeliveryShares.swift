import PrismConfig

/// The part that a namespace and kind may take of the transport and the store.
struct DeliveryShares: Sendable {
  /// Packets that it may have on their way, of all that the transport carries.
  var packetsMax = ReceiverFeatures.windowMax
  /// Several clients wait for the store: what it does at a time is short.
  var hasNeighbours = false
}

extension Delivery.Conditions {
  /// Packets that may be on their way, if the receiver takes them.
  var windowMax: Int { min(configuration?.window ?? 1, shares.packetsMax) }
}
