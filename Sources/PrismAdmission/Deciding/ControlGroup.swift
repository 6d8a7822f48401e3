import PrismConfig

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
