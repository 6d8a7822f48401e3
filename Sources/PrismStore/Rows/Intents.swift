public import PrismProtocol
import PrismSQLite

/// Kept reports that a trigger would let go, and of which the collector is asked first (docs/recorder.md, "A sample of the
/// fleet").
public struct ReleaseIntent: Sendable, Equatable {
  /// The trigger's name.
  public let rule: String
  /// The most devices that send for it.
  public internal(set) var devices: Int
  /// Reports that wait for the answer, and the bytes of their metas and payloads.
  public internal(set) var reports = 0, bytes = 0
}

/// Rows that wait for the collector's answer: they are `waiting` and stay where they are, and no claim finds them. So a kill
/// before the answer is written down only means that the collector is asked again.
struct Intents: PlainOperations {
  let transaction: StoreTransaction

  /// One for each trigger, in the order in which they fired.
  func open(of namespace: NamespaceName) throws(SQLiteError) -> [ReleaseIntent] {
    var intents: [ReleaseIntent] = []
    for queue in state.names.number(of: namespace).map({ QueueID.all(of: $0) }) ?? [] {
      for release in state[queue].releases where release.devices > 0 {
        let place = intents.firstIndex { $0.rule == release.rule } ?? intents.count
        if place == intents.count { intents.append(ReleaseIntent(rule: release.rule, devices: release.devices)) }
        intents[place].devices = release.devices
        intents[place].bytes += try transaction.bytes(of: release.members, queue)
        if queue.kind == .meta { intents[place].reports += release.members.count }
      }
    }
    return intents
  }

  /// Lets the rows of a trigger leave, or keeps them, those that came since the question among them.
  func decide(
    _ rule: String, _ namespace: NamespaceName, _ leaves: Bool, _ ringBytesMax: Int
  ) throws(SQLiteError) {
    guard let number = state.names.number(of: namespace) else { return }
    var (rows, bytes) = (0, 0)
    for queue in QueueID.all(of: number) {
      let members = IDRuns(
        union: state[queue].releases.filter { $0.rule == rule && $0.devices > 0 }.map(\.members))
      guard !members.isEmpty else { continue }
      let types = try leaves ? Ring(transaction).types(of: members, queue) : Ring(transaction).takeBack(members, queue)
      if leaves {
        try transaction.hold(members, queue)
        try transaction.letGo(members, queue, by: rule)
      }
      if queue.kind == .meta { try Ring(transaction).note(types, leaves ? .triggered : .declined, number) }
      rows += members.count
      bytes += types.values.reduce(0) { $0 + $1.bytes }
    }
    if !leaves { try Ring(transaction).overwrite(QueueID.all(of: number), bytesMax: ringBytesMax) }
    guard rows > 0, var run = state.counts.triggers[number]?[rule] else { return }
    for user in run.users.keys where run.users[user]?.following.isAsked == true {
      run.users[user]?.following.isAsked = false
      guard !leaves else { continue }
      let own = min(bytes, run.users[user]?.bytes.total ?? 0)
      run.users[user]?.bytes.take(own)
      run.users[user]?.following.count = 0
      bytes -= own
    }
    if leaves { run.rows += rows } else { run.declined += 1 }
    state.counts.triggers[number]?[rule] = run
    try transaction.write(run.note, TriggerState.keyPrefix + rule, number)
  }
}

extension ReportStore {
  /// The collector is to be asked about these before they leave.
  public func intents(of namespace: NamespaceName) throws(StoreError) -> [ReleaseIntent] {
    try read { (transaction) throws(SQLiteError) in try Intents(transaction).open(of: namespace) }
  }

  /// Writes the collector's answer down. - Parameter leaves: false: enough devices have sent, and the rows are kept again.
  public func decide(
    _ intent: ReleaseIntent, of namespace: NamespaceName, leaves: Bool, ringBytesMax: Int
  ) throws(StoreError) {
    try write { (t) throws(SQLiteError) in try Intents(t).decide(intent.rule, namespace, leaves, ringBytesMax) }
  }
}
