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
