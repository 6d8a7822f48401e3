/// Adds fields of a record to each report of a type as it is taken (docs/records.md, "Enrich reports").
public struct RecordEnrichment: Sendable, Equatable {
  /// Rules of one namespace at most.
  public static let countMax = 16
  /// Fields of one rule at most.
  public static let fieldsMax = 32

  /// The type of the reports.
  public var type: ReportType
  /// The member of the meta that holds the record's id, or what its field `by` holds.
  public var from: String
  /// The table of the record; the server changes it.
  public var table: RecordTableName
  /// The indexed field by which the record is found; nil: by its id.
  public var by: String?
  /// The member of the meta that gets the fields. A report that has it keeps its own.
  public var into: String
  /// The fields to add, those that the record has.
  public var fields: [String]

  public init(
    type: ReportType, from: String, table: RecordTableName, by: String? = nil, into: String, fields: [String]
  ) {
    (self.type, self.from, self.table, self.by) = (type, from, table, by)
    (self.into, self.fields) = (into, fields)
  }
}
