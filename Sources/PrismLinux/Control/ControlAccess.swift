import PrismProtocol

/// Which users are answered over the control socket, and as what (docs/control-protocol.md, Roles).
struct ControlAccess: Equatable {
  var ownUserID: UInt32
  /// Of `control.group` and `control.readers`; nil: not configured.
  var groupID: UInt32?, readersID: UInt32?

  /// - Returns: nil for a user who is not answered.
  func role(of peer: PeerCredentials) -> ControlRole? {
    if peer.userID == 0 || peer.userID == ownUserID || groupID.map(peer.isMember) ?? false { return .full }
    return readersID.map(peer.isMember) ?? false ? .reader : nil
  }

  /// A socket's file has one group. With two configured everyone may connect, and the peer's user alone decides.
  static func rights(group: String?, readers: String?) -> (mode: UInt32, group: String?) {
    group == nil || readers == nil || group == readers ? (0o660, group ?? readers) : (0o666, nil)
  }
}

/// How many control connections a user may have, so that readers never lock out operators, nor each other.
enum ControlPlaces {
  static let connectionsMax = 64
  /// Of all readers together, and of one of them.
  static let readersMax = 48, perReaderMax = 16

  /// - Returns: why there is no place; nil: there is one.
  static func refusal(of caller: ControlCaller, among open: some Collection<ControlCaller>) -> String? {
    if open.count >= connectionsMax { return "\(connectionsMax) control connections are open already; try again" }
    guard caller.role == .reader else { return nil }
    let readers = open.filter { $0.role == .reader }
    if readers.count >= readersMax { return "\(readersMax) control connections of readers are open already; try again" }
    guard readers.count(where: { $0.userID == caller.userID }) >= perReaderMax else { return nil }
    return "you have \(perReaderMax) control connections open already; close one"
  }
}
