import PrismProtocol

extension InFlightQueue {
  /// The next packet needs more than the rest of the budget. Its rows are given back, and half of them are claimed. One row
  /// waits for the next budget, and so does a packet that may have left; the rows behind it wait, too.
  /// - Parameter rawBytes: of the packet before compression.
  mutating func postpone(_ id: PacketID, _ neededBytes: Int, rawBytes: Int) {
    guard let entry = self[id] else { return }
    guard entry.canShrink else {
      (isExhausted, postponed) = (true, (id, neededBytes))
      return
    }
    claimBytesMax = max(1, rawBytes / 2)
    hold(id)
  }

  /// The rest of the budget that the next packet waits for; nil if it does not wait.
  var awaitedFlowBytes: Int? { postponed.flatMap { self[$0.id]?.isToLeave == true ? $0.neededBytes : nil } }
}

extension InFlightQueue.Entry {
  /// Its rows may go in smaller packets.
  var canShrink: Bool { itemCount > 1 && !mayHaveLeft }
}
