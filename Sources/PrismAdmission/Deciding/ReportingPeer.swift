import Glibc
public import PrismBase
import PrismConfig

/// The process at the other end of a connection, as the kernel says; nothing of it comes from the client.
public struct ReportingPeer: Sendable, Hashable {
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

  /// Whether it is this process, by the kernel's word.
  public var isDaemon: Bool { processID == getpid() }

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

/// Reads `/proc/PID/cgroup` (cgroups(7)): the systemd unit that a process belongs to.
public enum ControlGroup {
  /// Kinds of units that have processes.
  private static let suffixes = [".service", ".scope", ".socket", ".mount", ".swap"]

  /// The unit of the system's manager: the first control group on the way down that is no slice. Below it, names are
  /// given by the unit itself: within `user@1000.service` a user may call a unit anything.
  /// - Parameter text: lines of `ID:CONTROLLERS:PATH`; version 2 has one, `0::PATH`, version 1 one for systemd among
  /// others. Where both are mounted systemd may use either: the one that names a unit counts, its own hierarchy first.
  /// - Returns: nil if the process is in no unit.
  public static func unit(_ text: String) -> String? {
    var (own, unified): (String?, String?) = (nil, nil)
    for line in text.split(separator: "\n") {
      let parts = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
      guard parts.count == 3 else { continue }
      if parts[1] == "name=systemd" { own = unit(path: parts[2]) }
      if parts[0] == "0", parts[1].isEmpty { unified = unit(path: parts[2]) }
    }
    return own ?? unified
  }

  private static func unit(path: Substring) -> String? {
    guard let group = path.split(separator: "/").first(where: { !$0.hasSuffix(".slice") }) else { return nil }
    // systemd escapes a name that the kernel could take for a file of its own.
    let name = group.hasPrefix("_") ? group.dropFirst() : group
    guard name.utf8.count <= UnitPattern.bytesMax, name.utf8.allSatisfy(UnitPattern.isNameByte),
      suffixes.contains(where: { name.hasSuffix($0) && name.utf8.count > $0.utf8.count })
    else { return nil }
    return String(name)
  }
}

/// The host's part of the common information (docs/ingest-protocol.md): read once at start, handed in as a value.
public struct HostFacts: Sendable, Equatable {
  /// `SYS_DEVICE_ID`, unless the configuration names one.
  public var deviceID: String
  /// The hardware's vendor and product; nil if the machine doesn't say.
  public var brand: String?
  /// The product; nil if the machine doesn't say.
  public var model: String?
  /// The system's pretty name and the kernel.
  public var systemVersion: String
  /// The boot's id; nil if the machine doesn't say.
  public var bootID: String?
  /// How the clock is set; nil until a report comes.
  public var clock: ClockSetting?

  /// Facts as they were read.
  public init(
    deviceID: String, brand: String? = nil, model: String? = nil, systemVersion: String, bootID: String? = nil
  ) {
    (self.deviceID, self.brand, self.model, self.systemVersion) = (deviceID, brand, model, systemVersion)
    self.bootID = bootID
  }

  /// - Returns: milliseconds since 1970. `clock` is how the clock is set then.
  public mutating func read(_ time: any TimeSource) -> Int64 {
    let reading = ClockReading(time)
    if clock?.step(to: reading.setting) != 0 { clock = reading.setting }
    return reading.unixMilliseconds
  }
}
