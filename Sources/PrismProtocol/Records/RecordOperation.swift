/// One change of a record as a packet carries it: one line of its block (docs/records.md, "The upload").
public struct RecordOperation: Equatable, Sendable {
  /// The order to the server. The raw values are in the database, and never change.
  public enum Kind: Int, Sendable, CaseIterable {
    case insert = 1
    case update = 2
    case delete = 3

    /// The word in the operation.
    public var name: String { "\(self)" }

    init?(named name: String) {
      guard let kind = Self.allCases.first(where: { $0.name == name }) else { return nil }
      self = kind
    }
  }

  /// Names the operation in the answer; unique over all devices.
  public var op: String
  /// The table of the record.
  public var table: RecordTableName
  /// The id that the program gave.
  public var id: RecordID
  /// The server's id; nil before it is known.
  public var serverID: RecordID?
  /// The order to the server.
  public var kind: Kind
  /// The whole new fields, an object; nil for `delete`. References hold the server's ids.
  public var fields: JSONValue?
  /// Counts the changes on the device.
  public var version: Int64
  /// When the last change was made; milliseconds since 1970, by the device's clock.
  public var changedTime: Int64
  /// The device has executed the server's operations on the table up to this number: the change was made, or held, with
  /// those known. nil: it never asked for them.
  public var after: Int64?

  public init(
    op: String, table: RecordTableName, id: RecordID, serverID: RecordID?, kind: Kind, fields: JSONValue?,
    version: Int64, changedTime: Int64, after: Int64? = nil
  ) {
    (self.op, self.table, self.id, self.serverID, self.kind) = (op, table, id, serverID, kind)
    (self.fields, self.version, self.changedTime, self.after) = (fields, version, changedTime, after)
  }

  /// The line, without a line feed.
  public var line: [UInt8] {
    var members: [JSONValue.Member] = [
      .init("op", .string(op)), .init("table", .string(table.text)), .init("id", .string(id.text)),
    ]
    if let serverID { members.append(.init("serverId", .string(serverID.text))) }
    members.append(.init("type", .string(kind.name)))
    if let fields { members.append(.init("fields", fields)) }
    members.append(.init("version", .int(version)))
    members.append(.init("time", .int(changedTime)))
    if let after { members.append(.init("after", .int(after))) }
    return JSONValue.object(members).bytes
  }

  /// Reads a line. nil if it is no operation; members that this version does not know are ignored.
  public init?(line: [UInt8]) {
    guard let value = try? JSONValue(parsing: line), let op = value["op"]?.string, (1...128).contains(op.utf8.count),
      let table = value["table"]?.string.flatMap({ RecordTableName($0) }),
      let id = value["id"]?.string.flatMap({ RecordID($0) }),
      let kind = value["type"]?.string.flatMap({ Kind(named: $0) }),
      let version = value["version"]?.int, version > 0, let time = value["time"]?.int
    else { return nil }
    var serverID: RecordID?
    if let given = value["serverId"] {
      guard let text = given.string, let known = RecordID(text) else { return nil }
      serverID = known
    }
    let fields = value["fields"]
    guard kind == .delete ? true : fields?.object != nil else { return nil }
    self.init(
      op: op, table: table, id: id, serverID: serverID, kind: kind, fields: kind == .delete ? nil : fields,
      version: Int64(version), changedTime: Int64(time), after: value["after"]?.int.map { Int64($0) })
  }
}
