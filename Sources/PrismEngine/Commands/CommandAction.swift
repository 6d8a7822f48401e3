import PrismBase
import PrismConfig
import PrismPacket
import PrismProtocol

/// A command whose arguments are in order, and permitted by the daemon's file.
enum CommandAction: Equatable, Sendable {
  case flush
  case doctor
  case requeue
  case drop
  case log(Logger.Level, Duration)
  /// An absolute path that one of `commands.files` means.
  case collect(path: String)
  /// One of `commands.units`.
  case run(unit: String)
  case acceptStore(StoreMark)
  /// `bytesMax` is within that of the daemon's file.
  case ask(Question)
  case trigger(TriggerOrder)
  /// nil: all reports of the namespace.
  case erase(ErasedValue?)

  private static let minutes: ClosedRange<Int64> = 1...60
  /// A collector that is broken into can't send these. Else a store could vouch for itself, too.
  private static let signed: Set<CommandName> = [.trigger, .erase, .acceptStore]

  init(_ request: CommandRequest, _ rules: DaemonConfiguration.Commands) throws(CommandRefusal) {
    guard request.name == .ask || rules.allow.contains(request.name) else { throw .notAllowed(request.name) }
    guard rules.publicKey != nil || !Self.signed.contains(request.name) else { throw .signatureNeeded }
    switch request.name {
    case .flush: self = try Self.plain(.flush, request)
    case .doctor: self = try Self.plain(.doctor, request)
    case .requeue: self = try Self.plain(.requeue, request)
    case .drop: self = try Self.plain(.drop, request)
    case .log: self = try Self.log(request)
    case .ask:
      var question: Question
      do throws(CommandFault) { question = try Question(request.args) } catch { throw .unreadable(error) }
      guard rules.allowsAsking(for: question.type) else { throw .notAsked(question.type) }
      question.bytesMax = min(question.bytesMax, rules.askBytesMax)
      self = .ask(question)
    case .trigger:
      let order: TriggerOrder
      do throws(CommandFault) { order = try TriggerOrder(request.args) } catch { throw .unreadable(error) }
      if let type = order.trigger?.types.first(where: { !rules.allowsAsking(for: $0) }) { throw .notAsked(type) }
      self = .trigger(order)
    case .erase:
      let condition: MetaCondition?
      do throws(CommandFault) { condition = try request.erased() } catch { throw .unreadable(error) }
      do throws(PacketError) {
        self = .erase(try condition.map { (condition) throws(PacketError) in try ErasedValue(condition) })
      } catch { throw .arguments("where can't be hashed: \(error.rawValue)") }
    case .acceptStore:
      guard let store = StoreMark(try Self.text("store", of: request)) else {
        throw .arguments("store must be the identity of a store as `prismctl status --all` shows it: 16 hex digits, .0")
      }
      self = .acceptStore(store)
    case .collect:
      let path = try Self.text("path", of: request)
      guard rules.files.contains(where: { Self.matches(path, $0) }) else {
        throw .arguments("the path is not one of commands.files in the device's prismd.yaml")
      }
      self = .collect(path: path)
    case .run:
      let unit = try Self.text("name", of: request)
      guard rules.units.contains(unit) else {
        throw .arguments("the name is not in commands.units of the device's prismd.yaml")
      }
      self = .run(unit: unit)
    }
  }

  /// It takes no argument.
  private static func plain(
    _ action: CommandAction, _ request: CommandRequest
  ) throws(CommandRefusal) -> CommandAction {
    try check(request, known: [])
    return action
  }

  private static func log(_ request: CommandRequest) throws(CommandRefusal) -> CommandAction {
    try check(request, known: ["level", "minutes"])
    guard case .text(let name)? = request.args["level"], let level = Logger.Level(rawValue: name) else {
      throw .arguments("log needs the argument level: debug, info, warning or error")
    }
    switch request.args["minutes"] {
    case nil: return .log(level, .seconds(60 * minutes.upperBound))
    case .integer(let count) where minutes.contains(count): return .log(level, .seconds(60 * count))
    default: throw .arguments("minutes must be a whole number, 1 to 60")
    }
  }

  private static func text(_ key: String, of request: CommandRequest) throws(CommandRefusal) -> String {
    try check(request, known: [key])
    guard case .text(let text)? = request.args[key] else {
      throw .arguments("\(request.name.rawValue) needs the argument \(key), a string")
    }
    return text
  }

  private static func check(_ request: CommandRequest, known: [String]) throws(CommandRefusal) {
    guard let other = request.args.keys.sorted().first(where: { !known.contains($0) }) else { return }
    let words = known.isEmpty ? "takes no argument" : "takes \(known.joined(separator: " and "))"
    throw .arguments("\(request.name.rawValue) \(words), not \(other)")
  }

  /// Part by part: `*` and `?` never mean a slash.
  static func matches(_ path: String, _ pattern: String) -> Bool {
    guard path.hasPrefix("/"), !path.utf8.contains(0) else { return false }
    let parts = path.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init)
    let globs = pattern.split(separator: "/", omittingEmptySubsequences: false).dropFirst().map(String.init)
    return parts.count == globs.count && parts.allSatisfy { !["", ".", ".."].contains($0) }
      && zip(globs, parts).allSatisfy { Glob.matches($0, $1) }
  }
}
