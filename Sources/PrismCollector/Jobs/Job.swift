import PrismBase
import PrismPacket
package import PrismProtocol

/// A command or a change of a record for many devices, which it reaches one after the other (docs/fleet.md, "Jobs").
struct Job: Sendable, Equatable {
  enum State: String, Sendable, CaseIterable {
    case running
    /// No further device gets it, until an operator says otherwise.
    case paused
    /// Too many devices failed; an operator may let it go on.
    case stopped
    /// An operator ended it.
    case cancelled
    /// Its time is over before all devices got it.
    case expired
    /// Each of its devices has carried it out, or failed.
    case done

    var mayChange: Bool { [.running, .paused, .stopped].contains(self) }
    /// For SQL.
    static let thatGoOn = allCases.filter(\.mayChange).map { "'\($0.rawValue)'" }.joined(separator: ", ")
  }

  enum Progress: String, Sendable, CaseIterable {
    case waiting
    /// The command is in its table.
    case sent
    case done, failed
  }

  struct Device: Sendable, Equatable {
    let id: String
    var progress = Progress.waiting
    /// Why it failed, or what the command answered.
    var result: String?
    /// In base64, of its command; nil: the command is not signed.
    var signature: String?
    /// Milliseconds since 1970.
    var changedTime: Int64
  }

  static let devicesMax = 100_000
  static let perMinute = 1...60_000
  static let resultBytesMax = 512

  /// A UUID.
  let id: String
  let namespace: NamespaceName
  let who: String
  let expression: String
  let change: Change
  /// Milliseconds since 1970. From `expireTime` on no device gets it.
  let madeTime: Int64, expireTime: Int64
  /// Devices that get it in a minute.
  let perMinute: Int
  /// With more devices that failed it stops.
  let failuresMax: Int
  var state = State.running
  /// When its next step is due.
  var dueTime: Int64

  /// The thing that each device gets.
  enum Change: Sendable, Equatable {
    case command(CommandName, [String: CommandValue])
    case record(RecordTableName, RecordChange)
  }

  /// The id of a device's command: always the same, so no device gets it twice, whichever collector dies.
  func commandID(for device: String) -> RecordID? { CommandRequest.id(of: id, for: device) }

  /// The change of one device's table. - Returns: nil: its command can't be made.
  func change(for device: Device) -> (place: RecordPlace, change: RecordChange, condition: ChangeCondition)? {
    switch change {
    case .record(let table, let change):
      return (RecordPlace(namespace: namespace, table: table, device: device.id), change, .always)
    case .command(let name, let arguments):
      guard let id = commandID(for: device.id) else { return nil }
      let request = CommandRequest(
        namespace: namespace, deviceID: device.id, id: id, name: name, args: arguments, expires: expireTime,
        signature: device.signature.flatMap { Base64.decode($0.utf8) })
      return (
        RecordPlace(namespace: namespace, table: .command, device: device.id),
        RecordChange(id: id, action: .put(request.fields)), .isNew
      )
    }
  }
}

extension CommandRequest {
  package static func id(of job: String, for device: String) -> RecordID? {
    guard let hash = try? Hashing.sha256(Array("prism job\n\(job)\n\(device)".utf8)) else { return nil }
    let digits = Array(Hex.encode(Array(hash.prefix(16))).utf8)
    let ends = [0, 8, 12, 16, 20, 32]
    let parts = zip(ends, ends.dropFirst()).map { String(decoding: digits[$0..<$1], as: UTF8.self) }
    return RecordID(parts.joined(separator: "-"))
  }
}

extension Job.Change {
  /// `{"command":…,"args":{…}}`, or `{"table":…,"record":…}` with `fields`, `patch` or `delete`.
  /// - Throws: 400 naming the member.
  init(_ value: JSONValue, in namespace: NamespaceName) throws(CollectorRefusal) {
    let ofRecords = ["table", "record", "fields", "patch", "delete"]
    if value["command"] != nil {
      if let member = ofRecords.first(where: { value[$0] ?? .null != .null }) {
        throw CollectorRefusal(400, "\(member): belongs to a change of a record; send that or a command")
      }
      let fields = JSONValue([
        "name": value["command"]?.string ?? "", "args": value["args"] ?? .object([]), "expires": 1,
      ])
      do throws(CommandFault) {
        guard let id = RecordID("c") else { throw CommandFault.fieldsNotObject }
        let request = try CommandRequest(fields: fields, namespace: namespace, deviceID: "d", id: id)
        self = .command(request.name, request.args)
      } catch { throw CollectorRefusal(400, "command: \(error.message)") }
      return
    }
    guard let table = value["table"]?.string.flatMap({ RecordTableName($0) }), table != .command,
      let id = value["record"]?.string.flatMap({ RecordID($0) })
    else {
      throw CollectorRefusal(400, "send `command` with `args`, or `table` and `record` with fields, patch or delete")
    }
    guard value["args"] ?? .null == .null else { throw CollectorRefusal(400, "args: belongs to a command") }
    let action: RecordChange.Action
    switch (value["fields"], value["patch"], value["delete"]) {
    case (let fields?, nil, nil) where fields.object != nil: action = .put(fields)
    case (nil, let patch?, nil) where patch.object?.isEmpty == false: action = .patch(patch)
    case (nil, nil, .bool(true)?): action = .delete
    default: throw CollectorRefusal(400, "send one of fields, patch with a member, and delete, which is true")
    }
    self = .record(table, RecordChange(id: id, action: action))
  }

  var json: JSONValue {
    switch self {
    case .command(let name, let arguments):
      return JSONValue([
        "command": name.rawValue,
        "args": JSONValue.object(arguments.sorted { $0.key < $1.key }.map { .init($0.key, $0.value.json) }),
      ])
    case .record(let table, let change):
      let head = JSONValue(["table": table.text, "record": change.id.text])
      switch change.action {
      case .put(let fields): return head.adding(["fields": fields])
      case .patch(let patch): return head.adding(["patch": patch])
      case .delete: return head.adding(["delete": true])
      }
    }
  }
}
