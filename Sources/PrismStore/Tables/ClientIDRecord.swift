import PrismSQLite

/// A row of `client_ids`: a report id that a client gave (`ClientIDKey`), and the row that has it.
struct ClientIDRecord: CheckedRecord {
  enum Column: String, SQLiteColumn { case namespace, reportID, row, deliveredTime }

  var namespace = 0
  var key = ""
  var row: Int64 = 0
  /// By the held clock; nil until the row was delivered.
  var deliveredTime: Int64?

  mutating func pass(_ row: inout RowFields<Column>) {
    row(.namespace, &namespace)
    row(.reportID, &key)
    row(.row, &self.row)
    row(.deliveredTime, &deliveredTime)
  }
}

/// A report id that a client gave, in the form of `client_ids`: `ID:USER`, so that equal ids of two users are two.
///
/// A colon is no character of a report id. `ID` alone is what versions before 3 of the database wrote: it is any user's,
/// so that a report which was sent before an upgrade is still known after it.
enum ClientIDKey {
  static func append(_ reportID: UnsafeRawBufferPointer, _ owner: RowOwner, to key: inout [UInt8]) {
    key.append(contentsOf: reportID)
    guard owner != .unknown else { return }
    key.append(UInt8(ascii: ":"))
    key.append(contentsOf: String(owner.number).utf8)  // a small string: no allocation
  }

  static func text(_ reportID: String, _ owner: RowOwner) -> String {
    owner == .unknown ? reportID : "\(reportID):\(owner.number)"
  }

  static func reportID(_ key: String) -> Substring { key.prefix { $0 != ":" } }

  /// nil: any user's.
  static func userID(_ key: String) -> UInt32? {
    key.split(separator: ":", maxSplits: 1).dropFirst().first.flatMap { UInt32($0) }
  }
}

extension SQLiteConnection {
  /// In `facts`: `client_ids` has ids of no known user, and they must be looked up too.
  private static let ownerlessKey = "ids.ownerless"

  func hasOwnerlessIDs() throws(SQLiteError) -> Bool { try fact(Self.ownerlessKey) != nil }
  func setHasOwnerlessIDs(_ has: Bool) throws(SQLiteError) { try setFact(Self.ownerlessKey, has ? "1" : nil) }
}
