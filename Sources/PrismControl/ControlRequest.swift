public import PrismProtocol

/// A request of `prismctl` on the control socket: one JSON object on a line, `{"command":"flush","namespace":"shop"}`.
///
/// The daemon answers with one or more JSON objects, one on each line. The last one of an answer has `"done":true`, or
/// is an error: `{"error":{"message":…,"exitCode":…},"done":true}`. Lines before it report progress, or are the items
/// of a listing.
public struct ControlRequest: Sendable, Equatable {
  /// The commands by their names in a request.
  public enum Command: String, Sendable, CaseIterable {
    case status, flush, reload, network, explain, trace, tail, remove, export
    case deadList = "dead-list"
    case deadShow = "dead-show"
    case deadRequeue = "dead-requeue"
    case deadDrop = "dead-drop"
    case acceptStore = "accept-store"
    case configShow = "config-show"
    case configDiff = "config-diff"
    case doctor, carry, ack
    case carrySettle = "carry-settle"
  }

  /// The command; its arguments are the other members.
  public var command: Command
  /// Everything but `command`, as it came.
  public var arguments: [JSONValue.Member]

  public init(_ command: Command, _ arguments: [JSONValue.Member] = []) {
    (self.command, self.arguments) = (command, arguments)
  }

  public subscript(argument: String) -> JSONValue? {
    arguments.first { $0.key == argument }?.value
  }

  /// The line to send, without its line feed.
  public var bytes: [UInt8] {
    JSONValue.object([.init("command", .string(command.rawValue))] + arguments).bytes
  }

  /// - Throws: `bad_request`, naming what is wrong.
  public init(parsing line: [UInt8]) throws(Refusal) {
    let value: JSONValue
    do { value = try JSONValue(parsing: line) } catch { throw Refusal(.badRequest, error.description) }
    guard let members = value.object, let name = value["command"]?.string else {
      throw Refusal(.badRequest, "a request is a JSON object with a string `command`")
    }
    guard let command = Command(rawValue: name) else {
      let known = Command.allCases.map(\.rawValue).joined(separator: ", ")
      throw Refusal(.badRequest, "unknown command; known are: \(known)")
    }
    self.init(command, members.filter { $0.key != "command" })
  }
}
