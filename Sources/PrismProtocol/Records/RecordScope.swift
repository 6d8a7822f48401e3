/// The owner of the records that the server keeps in a table.
public enum RecordScope: String, Sendable, CaseIterable {
  /// One set for each device.
  case device
  /// One set for all devices; only with `down`.
  case fleet
}
