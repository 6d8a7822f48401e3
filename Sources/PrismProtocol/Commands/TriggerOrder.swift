/// A trigger that a server sets or takes away: the arguments of the command `trigger` (docs/recorder.md, "Triggers of a server").
public struct TriggerOrder: Equatable, Sendable {
  /// Triggers of a server have this ahead of their name: so no trigger of the configuration has it.
  public static let namePrefix = "server."
  /// The longest time that one holds: 30 days.
  private static let hoursMax: Int64 = 720

  /// With the prefix.
  public let name: String
  /// nil: it is taken away.
  public let trigger: ReportTrigger?
  /// It holds for as many hours with power, 1 to 720.
  public let hours: Int
  /// The arguments, from which the device makes it again after a start.
  public let args: [String: CommandValue]

  /// - Throws: `question` for arguments that are no such order.
  public init(_ args: [String: CommandValue]) throws(CommandFault) {
    var rest = CommandArguments(args, of: .trigger)
    guard let own = try rest.text("name"), RecordTableName(own) != nil, own.utf8.count <= 64 else {
      throw .question("name must be 1 to 64 of A-Z a-z 0-9 _ -, the first a letter or digit")
    }
    (name, self.args) = (Self.namePrefix + own, args)
    guard try !rest.truth("remove") else {
      (trigger, hours) = (nil, 0)
      try rest.end()
      return
    }
    guard let on = try rest.text("on").flatMap({ ReportType($0) }) else {
      throw .question("on must be the type of the reports that fire it")
    }
    var trigger = ReportTrigger(name: name, on: on)
    func set(_ path: WritableKeyPath<ReportTrigger, Int>, _ value: Int64?) {
      if let value { trigger[keyPath: path] = Int(value) }
    }
    if let (field, condition) = try rest.condition() { (trigger.field, trigger.condition) = (field, condition) }
    for type in try rest.text("types")?.split(separator: ",") ?? [] {
      guard let type = ReportType(entry: String(type)) else {
        throw .question("types must be types or patterns, with commas between them")
      }
      trigger.types.append(type)
    }
    trigger.same = try rest.text("same")
    set(\.count, try rest.number("count", 1...1_000_000))
    set(\.seconds, try rest.number("second", 1...86_400))
    set(\.before, try rest.number("before", 0...10_000))
    set(\.after, try rest.number("after", 0...10_000))
    set(\.everySeconds, try rest.number("everySecond", 0...86_400))
    set(\.bytesMax, try rest.number("maxKByteDay", 1...1_048_576).map { $0 << 10 })
    let devices = ReportTrigger.devicesRange
    trigger.devicesMax = try rest.number("maxDevices", Int64(devices.lowerBound)...Int64(devices.upperBound)).map {
      Int($0)
    }
    hours = Int(try rest.number("hours", 1...Self.hoursMax) ?? 168)
    guard trigger.before + trigger.after > 0 else {
      throw .question("before or after must say how many reports it lets go")
    }
    try rest.end()
    self.trigger = trigger
  }
}
