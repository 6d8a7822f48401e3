/// A record as programs read it.
public struct StoredRecord: Equatable, Sendable {
  /// The id that a program gave.
  public var id: RecordID
  /// The server's id; nil before it is known.
  public var serverID: RecordID?
  /// A JSON object, as text.
  public var fields: [UInt8]
  /// Counts the changes made here, from 1.
  public var version: Int64
  /// When the last change was made; milliseconds since 1970.
  public var changedTime: Int64
  /// The difference to the server.
  public var state: RecordState
  /// The server's words where it refused the last change; nil: it did not.
  public var refusal: String?

  public init(
    id: RecordID, serverID: RecordID?, fields: [UInt8], version: Int64, changedTime: Int64, state: RecordState,
    refusal: String?
  ) {
    (self.id, self.serverID, self.fields, self.version) = (id, serverID, fields, version)
    (self.changedTime, self.state, self.refusal) = (changedTime, state, refusal)
  }
}
