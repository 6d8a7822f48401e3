/// A table of records as a namespace declares it (docs/records.md).
public struct RecordTable: Equatable, Sendable {
  /// Records that a table may hold at most, by the configuration.
  public static let recordsMax = 1_000_000
  /// Fields that may refer to a record: each may become longer by a server's id.
  public static let referencesMax = 16

  /// Fields by which `enrich` may find a record.
  public static let indexedFieldsMax = 4

  /// The name of the table.
  public var name: RecordTableName
  /// The side that changes its records.
  public var direction: RecordDirection
  /// The owner of the records at the server.
  public var scope: RecordScope
  /// With `both`: the change that holds.
  public var onConflict: RecordConflict
  /// The most records here, records that wait for their deletion among them: 1 to 1,000,000.
  public var maxRecord: Int
  /// Its changes leave on unmetered networks only; nil: as the namespace says.
  public var onlyWifi: Bool?
  /// Fields that hold the id of a record, and the table of that record. The tables are declared beside this one.
  public var references: [String: RecordTableName]
  /// With `down`: fields by which `enrich` finds records, beside the id.
  public var index: Set<String>

  /// The built-in table of commands. Its size bounds what a device keeps of a server's commands.
  public static let commands = RecordTable(.command, direction: .both, maxRecord: 1000)

  /// The built-in table of tags: the record of the device's own file.
  public static let tags = RecordTable(.tags, maxRecord: 4)

  /// Programs may change its records.
  public var isWritable: Bool { direction.isWritable && !name.isBuiltIn }

  public init(
    _ name: RecordTableName, direction: RecordDirection = .up, scope: RecordScope = .device,
    onConflict: RecordConflict = .newest, maxRecord: Int = 10_000, onlyWifi: Bool? = nil,
    references: [String: RecordTableName] = [:], index: Set<String> = []
  ) {
    (self.name, self.direction, self.scope, self.onConflict) = (name, direction, scope, onConflict)
    self.maxRecord = maxRecord
    (self.onlyWifi, self.references, self.index) = (onlyWifi, references, index)
  }
}

/// The side that changes the records of a table.
public enum RecordDirection: String, Sendable, CaseIterable {
  /// This device does, and the server gets the changes.
  case up
  /// Either side does, and `RecordConflict` decides between two changes of one record.
  case both
  /// The server does, and this device reads.
  case down

  /// Programs may change its records.
  public var isWritable: Bool { self != .down }
  /// The server's changes are asked for.
  public var isPulled: Bool { self != .up }
}

/// The owner of the records that the server keeps in a table.
public enum RecordScope: String, Sendable, CaseIterable {
  /// One set for each device.
  case device
  /// One set for all devices; only with `down`.
  case fleet
}

/// The change that holds if this device and the server changed one record of a `both` table.
public enum RecordConflict: String, Sendable, CaseIterable {
  /// The later one; the server's if both have one time.
  case newest
  /// This device's.
  case local
  /// The server's.
  case remote

  /// Whether this device's change holds. Times are milliseconds since 1970.
  public func keepsLocal(changedHere: Int64, changedThere: Int64) -> Bool {
    switch self {
    case .newest: changedHere > changedThere
    case .local: true
    case .remote: false
    }
  }
}
