import PrismProtocol
import Synchronization

/// Where submissions come from: who sends them, and what they have in common. Made once for a connection, a resource or a
/// file, and shared by all of its submissions, so that their common information is stored once.
public final class SubmissionSource: Sendable {
  /// The sender, as the kernel says.
  public let peer: ReportingPeer
  /// The changes by which its reports are taken.
  let mending: Mending
  private let app: [String: String]
  private let members: [CommonMember]
  private let sessionID: String
  private let session = Mutex<Session?>(nil)

  /// - Parameter peer: as the kernel says, not as the sender does: `allow`, quotas and report ids follow it.
  /// - Parameter app: common information of the app (`CommonInformation.appKeys`); other keys are left out, and a value is
  ///   cut at `Limits.commonValueBytesMax` bytes.
  /// - Parameter members: further common information of this input, as JSON values. They count towards the size of each
  ///   merged meta, and win over a member of a meta with the same key.
  /// - Parameter mending: the changes by which its reports are taken.
  /// - Parameter sessionID: `APP_SESSION_ID`, unless `app` has one.
  public init(
    peer: ReportingPeer, app: [String: String] = [:], members: [CommonMember] = [], mending: Mending = Mending(),
    sessionID: String
  ) {
    self.app = app.filter { CommonInformation.appKeys.contains($0.key) }
      .mapValues { $0.cut(atBytes: Limits.commonValueBytesMax) }
    (self.peer, self.members, self.mending, self.sessionID) = (peer, members, mending, sessionID)
  }

  /// Lets `body` use the session that is in force, made for `rules` where it is older.
  func withSession<Result: Sendable>(
    _ rules: AdmissionRules, host: HostFacts, _ body: (inout Session) throws(Refusal) -> Result
  ) throws(Refusal) -> Result {
    let result = session.withLock { kept -> Swift.Result<Result, Refusal> in
      var session =
        kept
        ?? Session(
          rules: rules, host: host, peer: peer, sessionID: sessionID, greeting: Greeting(app), members: members)
      kept = nil
      defer { kept = session }
      session.take(rules)
      session.take(host.clock)
      do throws(Refusal) { return .success(try body(&session)) } catch { return .failure(error) }
    }
    return try result.get()
  }
}
