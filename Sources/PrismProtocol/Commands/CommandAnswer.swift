/// The part of a command's record that the device writes (docs/records.md, "Commands").
public struct CommandAnswer: Equatable, Sendable {
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

  /// `fields` with this answer in the place of an earlier one. All other members stay as they are. The beginning of a long
  /// result is cut off, so that all fit into a record.
  public func written(into fields: JSONValue) -> JSONValue {
    var answer = self
    while true {
      let written = answer.unfitted(into: fields)
      let excess = written.bytes.count - RecordRequest.fieldsBytesMax
      guard excess > 0, let result = answer.result else { return written }
      answer.result = Self.cut(result, by: excess)
    }
  }

  private func unfitted(into fields: JSONValue) -> JSONValue {
    var members = (fields.object ?? []).filter { !Self.members.contains($0.key) }
    members.append(.init("state", .string(state.rawValue)))
    if let result { members.append(.init("result", result)) }
    members.append(.init("stateTime", .int(stateTime)))
    return .object(members)
  }

  /// - Returns: nil if nothing is left of it.
  private static func cut(_ result: JSONValue, by excess: Int) -> JSONValue? {
    switch result {
    case .string(let text): return text.isEmpty ? nil : .string(cut(text, by: excess))
    case .object(let members):
      guard let place = members.firstIndex(where: { $0.key == outputKey }), let text = members[place].value.string,
        !text.isEmpty
      else { return nil }
      var shorter = members
      shorter[place] = .init(outputKey, .string(cut(text, by: excess)))
      return .object(shorter)
    case .null, .bool, .number, .array: return nil
    }
  }

  /// Cuts characters off the beginning that have at least `excess` bytes in JSON.
  private static func cut(_ text: String, by excess: Int) -> String {
    var (rest, bytes) = (Substring(text), 0)
    while bytes < excess, let first = rest.popFirst() { bytes += JSONValue.string(String(first)).bytes.count - 2 }
    return String(rest)
  }

  /// The member of a result whose beginning may be cut off.
  public static let outputKey = "output"

  static let members: Set = ["state", "result", "stateTime"]
}

/// The progress of a command, as the device writes it into the command's record (docs/records.md, "Commands").
public enum CommandState: String, Sendable, CaseIterable {
  /// It waits for its turn at the device.
  case accepted
  /// It began. It never begins again.
  case running
  case done
  case failed
  /// It had not begun when its time was over.
  case expired
  /// The device does not carry it out.
  case refused

  /// Nothing follows it.
  public var isFinal: Bool { self != .accepted && self != .running }
}

/// A command as `prismctl command list` shows it.
public struct CommandReport: Sendable {
  /// The id of its record.
  public let id: String
  /// Its name; nil if it can't be read.
  public let name: String?
  /// nil: the device has not looked at it.
  public let answer: CommandAnswer?

  /// - Parameter record: as the ingest socket sends it.
  public init(record: JSONValue) {
    let fields = record["fields"] ?? .null
    (id, name, answer) = (record["id"]?.string ?? "", fields["name"]?.string, CommandAnswer(fields: fields))
  }
}
