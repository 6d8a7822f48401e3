/// A record of a full answer, as the server has it.
public struct DownRecord: Equatable, Sendable {
  /// The server's id.
  public var id: RecordID
  /// The id that this device gave, for a record that it made.
  public var localID: RecordID?
  /// A JSON object as text, of at most 10,240 bytes.
  public var fields: [UInt8]
  /// When it was changed last: milliseconds since 1970.
  public var time: Int64

  public init(id: RecordID, localID: RecordID? = nil, fields: [UInt8], time: Int64) {
    (self.id, self.localID, self.fields, self.time) = (id, localID, fields, time)
  }

  /// The line, without a line feed.
  public var line: [UInt8] {
    var line = Array(#"{"id":"#.utf8)
    JSONValue.append(quoted: id.text, to: &line)
    if let localID { DownMembers.append(.localId, localID.text, to: &line) }
    return line + Array(#","fields":"#.utf8) + fields + Array(#","time":\#(time)}"#.utf8)
  }

  init?(_ members: DownMembers) {
    guard let id = members.string(.id).flatMap({ RecordID($0) }), let fields = members.fields,
      let time = members.integer(.time)
    else { return nil }
    self.init(id: id, fields: fields, time: time)
    if members.has(.localId) {
      guard let local = members.string(.localId).flatMap({ RecordID($0) }) else { return nil }
      localID = local
    }
  }
}
