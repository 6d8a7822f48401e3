import PrismAdmission
import PrismBase
import PrismConfig
import PrismProtocol

extension DaemonConfiguration.Forward {
  /// The namespace of the events.
  var namespaceText: String { namespace ?? Self.namespaceDefault }
}

/// Makes reports of the events of one message (docs/forward.md, "What becomes of an event"). Pure.
struct ForwardReports: Sendable {
  /// The member that names the tag where the type is another text.
  static let tagKey = "FLUENT_TAG"
  /// The events of a larger message share no part with others, so that a part is a run of ids.
  private static let smallBytes = 2048

  let message: ForwardMessage
  /// That the message was read of.
  private(set) var body: [UInt8]
  private let type: String
  private let namespace: String
  private let source: SubmissionSource
  /// The beginning of all report ids; nil: the message has no chunk, and its events are stored as often as it comes.
  private let idPrefix: ReportID?

  /// - Parameter idPrefix: of the message; nil without a chunk.
  init(
    _ message: ForwardMessage, of body: [UInt8], _ configuration: DaemonConfiguration.Forward, peer: ReportingPeer,
    idPrefix: ReportID?
  ) {
    (self.message, self.body, self.idPrefix) = (message, body, idPrefix)
    // A longer tag is no type's name, and matches no pattern.
    let tag = message.tag.utf8.count > 256 ? "" : message.tag
    type = configuration.types.first { Glob.matches($0.glob, tag) }?.type.text ?? tag
    namespace = configuration.namespaceText
    let named = CommonMember(Self.tagKey, .string(String(message.tag.prefix(256))))
    var mending = Mending()
    (mending.otherType, mending.cuts, mending.waits) = (.other, true, [.unknownNamespace, .unknownType])
    if tag == type { mending.otherMembers = Array("\"\(named.key)\":".utf8) + named.json }
    source = SubmissionSource(peer: peer, members: tag == type ? [] : [named], mending: mending, sessionID: "forward")
  }

  /// The ids of `count` events from `first` on; nil: the message has no chunk.
  func run(_ first: Int, count: Int) -> ReportIDRun? {
    idPrefix.flatMap { ReportIDRun($0, first: first, count: count) }
  }

  /// The same for events that were read before.
  var withoutBody: ForwardReports {
    var result = self
    result.body = []
    return result
  }

  /// The senders of lines in parts.
  var lineKey: String { "\(source.peer.accountID) \(message.tag)" }
  var accountID: UInt32 { source.peer.accountID }

  var isLarge: Bool { message.events.count > Self.smallBytes }

  func report(_ event: ForwardEvents.Event, _ members: [UInt8], _ index: Int) -> InputReport {
    let submission = Submission(
      type, in: namespace, members: members.span, payload: event.payload, createdTime: event.time,
      reportID: idPrefix?.numbered(index), from: source)
    return InputReport(submission: submission)
  }
}
