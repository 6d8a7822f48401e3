import PrismProtocol

struct RecordChange: Sendable, Equatable {
  enum Action: Sendable, Equatable {
    /// Sets all fields: an object.
    case put(JSONValue)
    /// Changes fields by a JSON Merge Patch: an object.
    case patch(JSONValue)
    case delete
  }

  /// The id that the writer or the device chose, or the server's.
  var id: RecordID
  var action: Action
}

/// The condition of a change (RFC 9110, section 13.1).
enum ChangeCondition: Sendable, Equatable {
  case always
  /// `If-Match`: the record has one of these tags; nil: there is a record.
  case matches([String]?)
  /// `If-None-Match: *`: there is no record.
  case isNew

  func holds(for record: CollectedRecord?) -> Bool {
    switch self {
    case .always: true
    case .matches(let tags): record.map { tags?.contains($0.tag) ?? true } ?? false
    case .isNew: record == nil
    }
  }
}

enum RecordChanged: Sendable, Equatable {
  /// - Parameters:
  ///   - record: as it is now; nil where several changes were made at once.
  ///   - wasMade: there was no such record before.
  case stored(_ record: CollectedRecord?, wasMade: Bool)
  case deleted
  /// There was no such record to delete.
  case absent
}

/// Why no change of several was made.
enum RecordFailure: Error, Equatable {
  case store(StoreFailure)
  /// - Parameter index: of the change.
  case refused(RecordRefusal, index: Int)
}

/// Why a change is not made.
enum RecordRefusal: Error, Equatable {
  /// The record is another one than the writer thinks, or is missing, or is there.
  case condition
  /// An id of digits is the collector's, and no record has this one.
  case unknownNumber
  /// - Parameter bytes: the size of the fields after a patch.
  case tooLarge(bytes: Int)
  /// The record would be no tags.
  case tags
  /// The table has records of the fleet, and the change is for a device.
  case isOfFleet
  /// Devices have records of their own in the table, and the change is for the fleet.
  case isOfDevices
}

/// Records of one table: those of a device, or those that all devices of the fleet read.
struct RecordPlace: Hashable, Sendable {
  var namespace: NamespaceName
  var table: RecordTableName
  /// nil: the fleet's.
  var device: String?

  /// As the stores keep it: empty for the fleet.
  var owner: String { device ?? "" }
}

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
