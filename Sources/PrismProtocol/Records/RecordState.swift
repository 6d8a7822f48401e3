/// The difference between a record here and at the server. The raw values are in the database, and never change.
public enum RecordState: Int, Sendable, CaseIterable {
  /// The server does not have the record.
  case insert = 1
  /// The server has older fields.
  case update = 2
  /// The server has it as it is here.
  case clean = 0
  /// It is deleted here; a tombstone stays until the server deleted it, too.
  case delete = 3

  /// The word in answers.
  public var name: String { "\(self)" }
}
