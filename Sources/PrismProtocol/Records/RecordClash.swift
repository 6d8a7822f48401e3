/// Both sides had changed a record, and one change was lost.
public struct RecordClash: Sendable, Equatable {
  /// The table and the record's local id.
  public var table: RecordTableName
  public var id: RecordID
  /// This device's change holds; else the server's.
  public var keptLocal: Bool
  /// JSON objects; nil: that side had deleted the record.
  public var local: [UInt8]?
  public var remote: [UInt8]?
  /// When they were made: milliseconds since 1970. The server's is nil for a deletion whose time it does not tell.
  public var localTime: Int64
  public var remoteTime: Int64?

  public init(
    table: RecordTableName, id: RecordID, keptLocal: Bool, local: [UInt8]?, remote: [UInt8]?, localTime: Int64,
    remoteTime: Int64?
  ) {
    (self.table, self.id, self.keptLocal, self.local, self.remote) = (table, id, keptLocal, local, remote)
    (self.localTime, self.remoteTime) = (localTime, remoteTime)
  }
}
