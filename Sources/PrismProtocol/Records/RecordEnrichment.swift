/// Adds fields of a record to each report of a type as it is taken (docs/records.md, "Enrich reports").
public struct RecordEnrichment: Sendable, Equatable {
  /// Rules of one namespace at most.
  public static let countMax = 16
  /// Fields of one rule at most.
  public static let fieldsMax = 32

  /// The type of the reports.
  public var type: ReportType
  /// The member of the meta that holds the record's id.
  public var from: String
  /// The table of the record; the server changes it.
  public var table: RecordTableName
  /// The member of the meta that gets the fields. A report that has it keeps its own.
  public var into: String
  /// The fields to add, those that the record has.
  public var fields: [String]

  public init(type: ReportType, from: String, table: RecordTableName, into: String, fields: [String]) {
    (self.type, self.from, self.table, self.into, self.fields) = (type, from, table, into, fields)
  }
}
