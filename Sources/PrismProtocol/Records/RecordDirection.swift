/// The side that changes the records of a table.
public enum RecordDirection: String, Sendable, CaseIterable {
  /// This device does, and the server gets the changes.
  case up
}
