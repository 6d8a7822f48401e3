import PrismBase
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
