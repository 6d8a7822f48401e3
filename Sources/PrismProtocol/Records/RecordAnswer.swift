/// The answer to a request about records, once its commit holds.
public enum RecordAnswer: Sendable, Equatable {
  /// Committed. - Parameter version: of the record; nil if it was deleted.
  case stored(version: Int64?)
  /// nil if no record has the id.
  case record(StoredRecord?)
  /// A page of records, the newest generation of their table, and whether more records follow.
  case list([StoredRecord], generation: Int64, isMore: Bool)
  /// The changes of the table are sent from here on: its number of changes so far.
  case watching(NamespaceName, RecordTableName, generation: Int64)
  /// Nothing was changed.
  case refused(Refusal)
}
