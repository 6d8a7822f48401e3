import PrismProtocol

/// The events of messages in their order, in parts that are small enough for one commit. A part is made when it is asked for:
/// only one of them needs memory.
///
/// Small messages share parts. A message that comes again makes the same runs.
struct ForwardParts: Sequence, IteratorProtocol {
  private var messages: ArraySlice<ForwardReports>
  private var index = 0

  init(_ messages: [ForwardReports]) { self.messages = messages[...] }

  mutating func next() -> InputPart? {
    var part = InputPart()
    while let message = messages.first {
      let isRun = message.eventCount >= InputPart.runMin
      if isRun && !part.reports.isEmpty { return part }
      let first = index
      append(message, to: &part)
      if isRun { part.run = message.run(first, count: part.reports.count) }
      if part.isFull || isRun && !part.reports.isEmpty { return part }
      messages.removeFirst()
      index = 0
    }
    return part.reports.isEmpty ? nil : part
  }

  /// Until the part is full.
  private mutating func append(_ message: ForwardReports, to part: inout InputPart) {
    while !part.isFull, let report = message.report(index) {
      part.append(report, bytes: message.bytes(of: index))
      index += 1
    }
  }
}
