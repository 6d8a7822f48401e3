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

  /// The rest of the budget with which a packet may leave. One that can't be made smaller and costs more than half of the whole
  /// budget needs half of it: it might never find more.
  func neededBytes(_ next: InFlightQueue.Entry, cost: Int) -> Int {
    guard !next.canShrink, let configuration else { return cost }
    return min(cost, configuration.maxFlowBytes / 2)
  }
}
