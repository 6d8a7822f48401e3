import PrismProtocol
import PrismSQLite

/// Triggers that a server set by a signed command (docs/recorder.md, "Triggers of a server"). Each is a note, written in the
/// transaction of the command's answer.
struct ServerTriggers: PlainOperations {
  private static let hourMilliseconds: Int64 = 3_600_000

  let transaction: StoreTransaction

  func take(_ order: TriggerOrder, _ namespace: NamespaceName) throws(SQLiteError) {
    let end = transaction.heldTime + Int64(order.hours) * Self.hourMilliseconds
    try put(ServerTrigger(order, end: end), order.name, try transaction.number(of: namespace))
  }

  private func put(_ held: ServerTrigger?, _ name: String, _ namespace: Int) throws(SQLiteError) {
    state.counts.serverTriggers[namespace, default: [:]][name] = held
    try transaction.write(held?.note, name, namespace)
    // Another one of its name counts from 0. One that holds has counts, also before it fires.
    state.counts.triggers[namespace, default: [:]][name] = held.map { _ in TriggerState() }
    try transaction.write(nil, TriggerState.keyPrefix + name, namespace)
  }

  /// Those that hold, by their names, each for the types of its own that are among `types`.
  func triggers(of namespace: Int, within types: [ReportType]) -> [ReportTrigger] {
    guard !types.isEmpty, let all = state.counts.serverTriggers[namespace] else { return [] }
    let now = transaction.heldTime
    let isAllowed = { (type: ReportType) in
      types.contains { $0 == type || $0.isPattern && !type.isPattern && $0.matches(type) }
    }
    return all.sorted { $0.key < $1.key }.filter { $0.value.end > now }.compactMap {
      var trigger = $0.value.trigger
      // That it fires says what the field has.
      guard trigger.field == nil || isAllowed(trigger.on) else { return nil }
      trigger.types = trigger.types.isEmpty ? types : trigger.types.filter(isAllowed)
      return trigger.types.isEmpty ? nil : trigger
    }
  }

  /// Forgets those whose time is over.
  func forget() throws(SQLiteError) {
    let now = transaction.heldTime
    for (namespace, all) in state.counts.serverTriggers {
      for (name, held) in all where held.end <= now { try put(nil, name, namespace) }
    }
  }
}
