/// The commands that a user of the control socket may send. A higher role includes the lower ones.
public enum ControlRole: Int, Sendable, Comparable, CaseIterable {
  /// Members of `control.readers`: what shows how the daemon is, and no report's content.
  case reader
  /// Root, the daemon's own user and members of `control.group`: everything.
  case full

  /// The key of prismd.yaml whose group has this role.
  public var key: String { self == .reader ? "control.readers" : "control.group" }

  public static func < (a: ControlRole, b: ControlRole) -> Bool { a.rawValue < b.rawValue }
}

/// The process that asks over the control socket, as the kernel named it when it connected.
public struct ControlCaller: Sendable, Equatable {
  /// The user id of the process, from the kernel.
  public var userID: UInt32
  /// Its process id when the connection was accepted.
  public var processID: Int32
  /// The role that user and groups give.
  public var role: ControlRole

  public init(userID: UInt32, processID: Int32, role: ControlRole) {
    (self.userID, self.processID, self.role) = (userID, processID, role)
  }
}

extension ControlRequest.Command {
  /// The lowest role that may ask for it. `config-diff` reads any file with the daemon's rights, and the listing of dead
  /// letters shows ids and answers of every namespace: neither is for readers.
  public var role: ControlRole {
    [.status, .network, .explain, .trace, .tail, .doctor, .configShow].contains(self) ? .reader : .full
  }

  /// Each use is one line of the daemon's log: it changes something, or hands out the content of reports.
  public var isLogged: Bool { role == .full && self != .deadList && self != .configDiff }
}
