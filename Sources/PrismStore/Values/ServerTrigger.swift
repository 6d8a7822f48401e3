import PrismProtocol

/// A trigger that a server set, until its end. It is a note.
struct ServerTrigger: Sendable, Equatable {
  let trigger: ReportTrigger
  /// By the held clock, in milliseconds.
  let end: Int64
  private let args: [String: CommandValue]

  init?(_ order: TriggerOrder, end: Int64) {
    guard let trigger = order.trigger else { return nil }
    (self.trigger, self.end, args) = (trigger, end, order.args)
  }

  /// nil if it is not one that `note` wrote.
  init?(note: [UInt8]) {
    guard let json = try? JSONValue(parsing: note), let end = json["end"]?.int else { return nil }
    var args: [String: CommandValue] = [:]
    for member in json["args"]?.object ?? [] { args[member.key] = CommandValue(member.value) }
    guard let order = try? TriggerOrder(args) else { return nil }
    self.init(order, end: Int64(end))
  }

  var note: [UInt8] {
    let members = args.map { JSONValue.Member($0.key, $0.value.json) }
    return JSONValue.object([.init("end", .int(Int(end))), .init("args", .object(members))]).bytes
  }
}
