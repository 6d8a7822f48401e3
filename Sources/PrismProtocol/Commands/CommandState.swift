/// The progress of a command, as the device writes it into the command's record (docs/records.md, "Commands").
public enum CommandState: String, Sendable, CaseIterable {
  /// It waits for its turn at the device.
  case accepted
  /// It began. It never begins again.
  case running
  case done
  case failed
  /// It had not begun when its time was over.
  case expired
  /// The device does not carry it out.
  case refused

  /// Nothing follows it.
  public var isFinal: Bool { self != .accepted && self != .running }
}
