import CLinux
import Glibc

/// The process that connected to a Unix socket, as the kernel noted it at that moment (SO_PEERCRED, SO_PEERGROUPS).
public struct PeerCredentials: Sendable, Equatable {
  /// The process id when it connected; it may have been reused since.
  public var processID: Int32
  /// The effective user and group when it connected.
  public var userID: UInt32, groupID: UInt32
  /// The supplementary groups; `groupID` need not be among them.
  public var groupIDs: Set<UInt32>
}

extension PeerCredentials {
  /// nil when `descriptor` isn't a connected Unix socket.
  public init?(of descriptor: Int32) {
    self.init(processID: 0, userID: 0, groupID: 0, groupIDs: [])
    guard prism_peer_credentials(descriptor, &processID, &userID, &groupID) == 0 else { return nil }
    groupIDs = Self.groups(of: descriptor)
  }

  /// Whether `group` is its effective group or one of its supplementary groups.
  public func isMember(of group: UInt32) -> Bool { groupID == group || groupIDs.contains(group) }

  private static func groups(of descriptor: Int32) -> Set<UInt32> {
    let linuxGroupsMax = 65_536
    for capacity in [64, linuxGroupsMax] {
      var groups = [UInt32](repeating: 0, count: capacity)
      let count = prism_peer_groups(descriptor, &groups, Int32(capacity))
      if count >= 0 { return Set(groups.prefix(Int(count))) }
    }
    return []
  }
}
