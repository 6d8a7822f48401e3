/// A record as programs read it.
public struct StoredRecord: Equatable, Sendable {
  /// Bytes of its text at most: the fields, and 512 bytes of the server's words with all of them escaped.
  static let textBytesMax = RecordRequest.fieldsBytesMax + 4096

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

  /// Bytes of its text, rounded up: what is around its members takes at most 128.
  public var textBytes: Int {
    128 + id.text.utf8.count + (serverID?.text.utf8.count ?? 0) + fields.count + 6 * (refusal?.utf8.count ?? 0)
  }

  public init(
    id: RecordID, serverID: RecordID?, fields: [UInt8], version: Int64, changedTime: Int64, state: RecordState,
    refusal: String?
  ) {
    (self.id, self.serverID, self.fields, self.version) = (id, serverID, fields, version)
    (self.changedTime, self.state, self.refusal) = (changedTime, state, refusal)
  }
}
