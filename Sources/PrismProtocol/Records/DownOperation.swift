/// A change that the server made to a record.
public struct DownOperation: Equatable, Sendable {
  /// Operations of one answer at most; for more of them the server sends all records.
  public static let countMax = 1000

  /// Its number: they ascend in the order of execution, in one sequence for the namespace. 1 or more.
  public var sequence: Int64
  /// Names the operation: 1 to 128 visible ASCII characters.
  public var op: String
  /// The table of the record.
  public var table: RecordTableName
  /// The server's id of the record.
  public var id: RecordID
  /// The id that this device gave, for a record that it made.
  public var localID: RecordID?
  /// `insert` and `update` both set all fields, whether the record is there or not.
  public var kind: RecordOperation.Kind
  /// The whole new fields: a JSON object as text, of at most 10,240 bytes; empty for `delete`.
  public var fields: [UInt8]
  /// The operation that must be executed before; it has a smaller number.
  public var dependsOn: String?
  /// When it was made: milliseconds since 1970.
  public var time: Int64

  public init(
    sequence: Int64, op: String, table: RecordTableName, id: RecordID, localID: RecordID? = nil,
    kind: RecordOperation.Kind, fields: [UInt8] = [], dependsOn: String? = nil, time: Int64
  ) {
    (self.sequence, self.op, self.table, self.id, self.localID) = (sequence, op, table, id, localID)
    (self.kind, self.fields, self.dependsOn, self.time) = (kind, fields, dependsOn, time)
  }

  /// The line, without a line feed.
  public var line: [UInt8] {
    var line = Array(#"{"seq":\#(sequence),"op":"#.utf8)
    JSONValue.append(quoted: op, to: &line)
    line += Array(#","table":"\#(table.text)","id":"#.utf8)
    JSONValue.append(quoted: id.text, to: &line)
    if let localID { DownMembers.append(.localId, localID.text, to: &line) }
    line += Array(#","type":"\#(kind.name)""#.utf8)
    if kind != .delete { line += Array(#","fields":"#.utf8) + fields }
    if let dependsOn { DownMembers.append(.dependsOn, dependsOn, to: &line) }
    return line + Array(#","time":\#(time)}"#.utf8)
  }

  init?(_ members: DownMembers) {
    guard let sequence = members.integer(.seq), sequence > 0, let op = members.name(.op),
      let table = members.string(.table).flatMap({ RecordTableName($0) }),
      let id = members.string(.id).flatMap({ RecordID($0) }),
      let kind = members.string(.type).flatMap({ RecordOperation.Kind(named: $0) }),
      let time = members.integer(.time)
    else { return nil }
    self.init(sequence: sequence, op: op, table: table, id: id, kind: kind, time: time)
    if members.has(.localId) {
      guard let local = members.string(.localId).flatMap({ RecordID($0) }) else { return nil }
      localID = local
    }
    if members.has(.dependsOn) {
      guard let name = members.name(.dependsOn) else { return nil }
      dependsOn = name
    }
    if kind != .delete {
      guard let fields = members.fields else { return nil }
      self.fields = fields
    }
  }
}
