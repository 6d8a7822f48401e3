/// Who is answered over the control socket (docs/configuration.md, "The daemon": `control.socket`).
enum ControlAccess {
  static func isAllowed(_ peer: PeerCredentials, ownUserID: UInt32, groupID: UInt32?) -> Bool {
    peer.userID == 0 || peer.userID == ownUserID || groupID.map(peer.isMember) ?? false
  }
}
