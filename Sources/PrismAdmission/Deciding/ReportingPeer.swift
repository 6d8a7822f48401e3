/// The process at the other end of a connection, as the kernel says; nothing of it comes from the client.
public struct ReportingPeer: Sendable, Equatable {
  /// The user of the process; nil if neither the kernel nor the journal says it. Then no rule for users applies to it.
  public var userID: UInt32?
  /// The process's group and its supplementary ones.
  public var groupIDs: Set<UInt32>
  /// The number of the process.
  public var processID: Int32
  /// The process's name; nil when it was gone already.
  public var processName: String?
  /// The executable's path; nil when it was gone already, or may not be seen.
  public var executable: String?
  /// The systemd unit that the process belongs to; nil when it was gone already, or is in no unit.
  public var unit: String?

  /// For people: `user 1000, process 4242 (backup)`. A process gives itself its name.
  public var title: String {
    let process = processID > 0 ? ", process \(processID)" : ""
    return "user \(userID.map { String($0) } ?? "unknown")\(process)"
      + (processName.map { " (\($0.prefix(64)))" } ?? "")
  }

  /// The user whose quotas, shares and report ids the process takes. No user has the id -1 (credentials(7)): a process
  /// without a known user shares them with the others of its kind.
  public var accountID: UInt32 { userID ?? .max }

  /// A peer with these facts.
  public init(
    userID: UInt32?, groupIDs: Set<UInt32>, processID: Int32, processName: String? = nil, executable: String? = nil,
    unit: String? = nil
  ) {
    (self.userID, self.groupIDs, self.processID) = (userID, groupIDs, processID)
    (self.processName, self.executable, self.unit) = (processName, executable, unit)
  }
}
