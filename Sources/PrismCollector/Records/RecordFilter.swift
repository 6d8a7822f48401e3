import PrismProtocol

/// Which records a reader asks for: a page of one table or of one device, by ascending server id.
struct RecordFilter: Sendable {
  /// Records of one page at most, and a page of SQLite's ends behind as many bytes of fields.
  static let (limitMax, bytesMax) = (1000, 4 * 1_048_576)

  /// The namespaces of the one who asks.
  let scope: Scope
  /// nil, as for the table: all. Then there is a device.
  var namespace: NamespaceName?
  var table: RecordTableName?
  /// nil: of all devices.
  var device: String?
  /// The local or the server's id; nil: all.
  var id: RecordID?
  /// The last server id of the page before; 0 for the first.
  var after: Int64 = 0
  var limit = 100
}
