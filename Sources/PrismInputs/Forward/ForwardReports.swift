import PrismAdmission
import PrismBase
import PrismConfig
import PrismProtocol

extension DaemonConfiguration.Forward {
  /// The namespace of the events.
  var namespaceText: String { namespace ?? Self.namespaceDefault }
}

/// Makes reports of the events of one message (docs/forward.md, "What becomes of an event"). Pure.
struct ForwardReports {
  /// The member that names the tag where the type is another text.
  static let tagKey = "FLUENT_TAG"

  private let message: ForwardMessage
  private let type: String
  private let namespace: String
  private let source: SubmissionSource
  private let commonBytes: Int
  /// The beginning of all report ids; nil: the message has no chunk, and its events are stored as often as it comes.
  private let idPrefix: ReportID?

  /// - Parameter idPrefix: of the message; nil without a chunk.
  init(
    _ message: ForwardMessage, _ configuration: DaemonConfiguration.Forward, peer: ReportingPeer, idPrefix: ReportID?
  ) {
    (self.message, self.idPrefix) = (message, idPrefix)
    // A longer tag is no type's name, and matches no pattern.
    let tag = message.tag.utf8.count > 256 ? "" : message.tag
    type = configuration.types.first { Glob.matches($0.glob, tag) }?.type.text ?? tag
    namespace = configuration.namespaceText
    let members = tag == type ? [] : [CommonMember(Self.tagKey, .string(String(tag.prefix(256))))]
    commonBytes = members.isEmpty ? 0 : 300
    source = SubmissionSource(peer: peer, members: members, sessionID: "forward")
  }

  /// Events that can't become reports.
  var unusableCount: Int { message.unusableCount }

  /// The ids of `count` events from `first` on; nil: the message has no chunk.
  func run(_ first: Int, count: Int) -> ReportIDRun? {
    idPrefix.flatMap { ReportIDRun($0, first: first, count: count) }
  }

  var eventCount: Int { message.events.count }

  /// Bytes of memory that the reports need until all are stored.
  var memoryBytes: Int { message.events.indices.reduce(0) { $0 + bytes(of: $1) } }

  /// Bytes of an event.
  func bytes(of index: Int) -> Int {
    let event = message.events[index]
    return MemoryLayout<ForwardMessage.Event>.stride + event.members.count + (event.payload?.count ?? 0)
  }

  /// `{"ack": chunk}`; empty if the sender wants no answer.
  var acknowledgement: [UInt8] {
    guard let chunk = message.chunk else { return [] }
    var result: [UInt8] = [0x81]
    result.append(msgpack: "ack")
    result.append(msgpack: String(decoding: chunk, as: UTF8.self))
    return result
  }

  /// nil behind the last one.
  func report(_ index: Int) -> InputReport? {
    guard index < message.events.count else { return nil }
    let event = message.events[index]
    let submission = Submission(
      type, in: namespace, members: message.text.span.extracting(event.members), payload: event.payload,
      createdTime: event.time, reportID: idPrefix?.numbered(index), from: source)
    return InputReport(submission: submission, commonBytes: commonBytes)
  }
}
