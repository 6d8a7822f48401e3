import PrismAdmission
import PrismBase
import PrismConfig
import PrismProtocol

/// The events of messages in their order, in parts that are small enough for one commit. A part is made when it is asked for:
/// only one of them needs memory.
///
/// Small messages share parts. A message that comes again makes the same runs.
struct ForwardParts {
  private var messages: ArraySlice<ForwardReports>
  private var events: ForwardEvents?
  private var index = 0
  /// Events that cannot become reports.
  private(set) var unusableCount = 0
  /// A message of which nothing could be read, or more than a limit lets through: it is not acknowledged.
  private(set) var fault: String?

  typealias Lines = PartialLines<(ForwardReports, ForwardEvents.Event)>
  /// Lines of messages without a chunk, of which more is to come, and those of one with a chunk.
  private let lines: Lines, chunkLines = Lines()
  private let now: Duration

  /// - Parameter lines: of the messages before.
  init(_ messages: [ForwardReports], _ lines: Lines, now: Duration) {
    (self.messages, self.lines, self.now) = (messages[...], lines, now)
  }

  mutating func next() -> InputPart? {
    var part = InputPart()
    while let message = messages.first, fault == nil {
      if message.isLarge && !part.reports.isEmpty { return part }
      var current = events ?? ForwardEvents(message.message, message.body)
      events = nil  // so that nothing of it is copied
      let first = index
      while !part.isFull, let event = current.next() {
        guard let members = whole(event, current.members, of: message) else { continue }
        append(event, members, of: message, to: &part)
      }
      if !part.isFull { endLines(of: message, to: &part) }
      if message.isLarge, part.reports.count >= InputPart.runMin {
        part.run = message.run(first, count: part.reports.count)
      }
      if part.isFull {
        events = current
        return part
      }
      end(current)
      if message.isLarge && !part.reports.isEmpty { return part }
    }
    return part.reports.isEmpty ? nil : part
  }

  private mutating func append(
    _ event: ForwardEvents.Event, _ members: [UInt8], of message: ForwardReports, to part: inout InputPart
  ) {
    part.append(message.report(event, members, index), bytes: members.count + (event.payload?.count ?? 0) + 64)
    index += 1
  }

  /// The members of an event, or of the line that it ends; nil if more of its line is to come.
  private mutating func whole(
    _ event: ForwardEvents.Event, _ members: [UInt8], of message: ForwardReports
  ) -> [UInt8]? {
    guard event.isPartial else { return members }
    let origin = (message.withoutBody, event)
    let lines = message.message.chunk == nil ? lines : chunkLines
    switch lines.take(members, .fluent, of: message.lineKey, origin, now: now) {
    case .no: return members
    case .held: return nil
    case .whole(let line): return line.members(isWhole: true)
    }
  }

  /// An acknowledged message holds no part back.
  private mutating func endLines(of message: ForwardReports, to part: inout InputPart) {
    guard message.message.chunk != nil, !chunkLines.isEmpty else { return }
    for line in chunkLines.takeOld(before: .seconds(Int64.max)) {
      append(line.origin.1, line.members(isWhole: false), of: line.origin.0, to: &part)
    }
  }

  private mutating func end(_ events: ForwardEvents) {
    let isUnread = events.eventCount == 0 && events.isDamaged
    if isUnread { fault = "its events are not msgpack, or not gzip as option.compressed says" }
    if events.isOverLimit {
      fault =
        "it unpacks to more than \(ForwardEvents.unpackedBytesMax) bytes, or an event to more than "
        + "\(ForwardEvents.eventBytesMax)"
    }
    unusableCount += events.unusableCount
    messages.removeFirst()
    index = 0
  }
}

extension DaemonConfiguration.Forward {
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
    (mending.otherType, mending.cuts, mending.waits) = (.other, true, Mending.untilConfigured)
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

  func report(_ event: ForwardEvents.Event, _ members: [UInt8], _ index: Int) -> Submission {
    Submission(
      type, in: namespace, members: members.span, payload: event.payload, createdTime: event.time,
      reportID: idPrefix?.numbered(index), from: source)
  }
}
