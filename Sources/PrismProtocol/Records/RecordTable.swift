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
