/// A command that a server may send to a device (docs/records.md, "Commands").
public enum CommandName: String, Sendable, CaseIterable, Comparable {
  /// Uploads now.
  case flush
  /// Stores the findings of `prismctl doctor --json` as a report.
  case doctor
  /// Sets the log level for at most an hour.
  case log
  /// Stores a file as the payload of a report.
  case collect
  /// Starts a systemd unit.
  case run
  /// Lets the namespace's dead letters wait again.
  case requeue
  /// Gives the namespace's dead letters up.
  case drop

  public static func < (a: Self, b: Self) -> Bool { a.rawValue < b.rawValue }
}
