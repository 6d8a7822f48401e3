import PrismProtocol
import PrismStore

// Packets in files, for a machine without a network (docs/carrying.md).
extension InFlightQueue {
  /// Carried packets of one namespace and kind that are not settled yet.
  static let carriedPacketsMax = 4096

  private var carriedCount: Int { entries.count { $0.isCarried } }

  /// No more is written before some are settled.
  var isCarryFull: Bool { carriedCount >= Self.carriedPacketsMax }
  /// All that was claimed is in files, and more may be claimed for the next ones.
  var isCarryingOn: Bool { carriedCount > 0 && aheadCount == 0 && !isCarryFull }
  /// All that may leave is in files.
  var hasCarriedAll: Bool {
    isRecovered && (isExhausted || isCarryFull) && entries.allSatisfy { $0.isCarried || $0.isAccepted }
  }

  /// The packet is in a file. Once the carrying has ended, it may be sent all the same.
  mutating func carried(_ id: PacketID) {
    guard isCarrying, let index = index(id) else { return }
    entries[index].content = .carried
  }

  /// - Returns: a decision over a packet, which is to be committed.
  mutating func carry(_ event: CarryEvent, _ now: Delivery.Conditions) -> Disposition? {
    switch event {
    case .begins: beginCarrying()
    case .ends: endCarrying()
    case .recovery: break
    case .returned(let id, let outcome):
      return returned(id, outcome.verdict, at: now.instant.unixMilliseconds, newID: { now.newID() })
    }
    return nil
  }

  /// No packet waits for the receipt of another one: files are read in their order.
  private mutating func beginCarrying() {
    for index in entries.indices { entries[index].waitsForReceipt = false }
    (isExhausted, isCarrying) = (false, true)
  }

  /// Carried packets may be sent again.
  private mutating func endCarrying() {
    for index in entries.indices where entries[index].isCarried { entries[index].content = .stored }
    isCarrying = false
  }

  /// Takes the answer to a packet that may have left. Only one that decides over it counts: with any other one it stays as
  /// it is.
  /// - Returns: the decision, which is to be committed.
  private mutating func returned(
    _ id: PacketID, _ verdict: DeliveryOutcome.Verdict, at unixMilliseconds: Int64, newID: () -> PacketID
  ) -> Disposition? {
    guard let entry = self[id], entry.mayHaveLeft, !entry.isAccepted else { return nil }
    let attempt = DeliveryDecision.Attempt(
      packet: id, itemCount: entry.itemCount, attempts: max(1, entry.attempts), isPending: pendingCount(before: id) > 0,
      mayBeTaken: true, now: unixMilliseconds)
    switch DeliveryDecision(verdict, attempt, newID: newID) {
    case .settled(let disposition):
      settle(id, disposition)
      return disposition
    case .split(let disposition, let first, let second):
      split(id, disposition, first: first, second: second)
      return disposition
    case .again, .setBack, .confirm, .afterPredecessor, .remade, .withoutDictionary, .inGzip, .kept, .carried:
      return nil
    }
  }
}
