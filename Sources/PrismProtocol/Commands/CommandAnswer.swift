/// The part of a command's record that the device writes (docs/records.md, "Commands").
public struct CommandAnswer: Equatable, Sendable {
  /// Bytes of a result's text at most.
  public static let resultBytesMax = 8192

  /// The progress.
  public var state: CommandState
  /// A string, or a flat object where a command has more to tell; nil: there is nothing to tell.
  public var result: JSONValue?
  /// When the state was reached: milliseconds since 1970, by the device's clock.
  public var stateTime: Int64

  public init(_ state: CommandState, result: JSONValue? = nil, stateTime: Int64) {
    (self.state, self.result, self.stateTime) = (state, result, stateTime)
  }

  /// nil if the record has no answer, or one that no device writes.
  public init?(fields: JSONValue) {
    guard let state = fields["state"]?.string.flatMap({ CommandState(rawValue: $0) }),
      case .number(let text) = fields["stateTime"], let time = Int64(text)
    else { return nil }
    self.init(state, result: fields["result"], stateTime: time)
  }

  /// `fields` with this answer in the place of an earlier one. All other members stay as they are.
  public func written(into fields: JSONValue) -> JSONValue {
    var members = (fields.object ?? []).filter { !Self.members.contains($0.key) }
    members.append(.init("state", .string(state.rawValue)))
    if let result { members.append(.init("result", result)) }
    members.append(.init("stateTime", .int(stateTime)))
    return .object(members)
  }

  static let members: Set = ["state", "result", "stateTime"]
}
