import Dispatch
public import PrismAdmission
public import PrismBase
public import PrismConfig
import PrismPacket
import PrismProtocol

/// Fluent's forward protocol (docs/forward.md): each event becomes a report.
///
/// Messages are decoded on a queue of its own, one at a time.
public actor ForwardInput: StreamInput {
  private nonisolated let executor = DispatchQueueExecutor(label: "prism.forward")
  /// The queue that decodes.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// How often events that may be taken later are tried before the connection ends without their acknowledgement.
  static let attemptsMax = 10
  private static let retryMillisecondsMax = 2000
  /// Of messages that need no reserved memory.
  private static let smallBytes = 256 * 1024

  private let snapshot: @Sendable () -> Snapshot
  private let time: any TimeSource
  private let large = OneAtATime()
  private var sent = SentRequests("forward")

  /// - Parameter snapshot: the configuration in force, asked for each connection and message.
  public init(time: any TimeSource = SystemTime(), snapshot: @escaping @Sendable () -> Snapshot) {
    (self.time, self.snapshot) = (time, snapshot)
  }

  /// As `StreamInput` says.
  public nonisolated var name: String { "forward" }

  /// As `StreamInput` says.
  public nonisolated func makeStream(isTCP: Bool) -> any MessageStream {
    let key = isTCP ? snapshot().daemon.forward.sharedKey : nil
    return ForwardStream(key: key.map { SharedKey(text: $0.bytes) })
  }

  /// Answers a request, after the commit of its reports.
  public func answer(
    _ request: InputRequest, from peer: ReportingPeer, to sink: any SubmissionSink
  ) async -> InputAnswer {
    var messages: [ForwardReports] = []
    if !sent.isLoaded {
      let note = await sent.stored(by: sink, in: snapshot().daemon.forward.namespaceText)
      sent.load(note, now: time.uptime)
    }
    do throws(ForwardMessage.Fault) {
      try read(request, peer) { messages.append($0) }
    } catch { return InputAnswer(status: error == .tooLarge ? 413 : 400, body: [], mustClose: true) }
    let bytes = messages.reduce(0) { $0 + $1.memoryBytes }
    let taken = messages
    let answer =
      if bytes > max(request.reservedBytes, Self.smallBytes) {
        await large.run { await self.submit(taken, peer, sink) }
      } else { await submit(messages, peer, sink) }
    if answer.status == 503 { request.receipt.settle(.lost) }
    return answer
  }

  private func read(
    _ request: InputRequest, _ peer: ReportingPeer, _ take: (ForwardReports) -> Void
  ) throws(ForwardMessage.Fault) {
    let body = request.body
    var start = 0
    while start < body.count {
      var framer = MsgPackFramer(from: start)
      guard let isWhole = try? framer.advance(body.span), isWhole else { throw .notForward }
      let message = try ForwardMessage(start..<framer.position, of: body.span) { bytes, bytesMax in
        try? gunzip(bytes[...], bytesMax: bytesMax, takesSeveral: true)
      }
      let content = start == 0 && framer.position == body.count ? body : Array(body[start..<framer.position])
      let idPrefix = message.chunk.flatMap { _ in
        sent.prefix(of: content, "f", from: peer.accountID, request.receipt, now: time.uptime)
      }
      take(ForwardReports(message, snapshot().daemon.forward, peer: peer, idPrefix: idPrefix))
      start = framer.position
    }
  }

  /// Waits until every event is stored, or is refused for good. The messages' acknowledgements come together.
  private func submit(
    _ messages: [ForwardReports], _ peer: ReportingPeer, _ sink: any SubmissionSink
  ) async -> InputAnswer {
    var refusedCount = messages.reduce(0) { $0 + $1.unusableCount }
    for part in ForwardParts(messages) {
      guard let refused = await submit(part, peer, sink) else {
        return InputAnswer(status: 503, body: [], mustClose: true)
      }
      refusedCount += refused
    }
    return InputAnswer(status: refusedCount == 0 ? 200 : 422, body: messages.flatMap(\.acknowledgement))
  }

  /// - Returns: events that are refused for good; nil if some are not stored, and the daemon stops or has tried often.
  private func submit(_ part: InputPart, _ peer: ReportingPeer, _ sink: any SubmissionSink) async -> Int? {
    var (rest, refusedCount) = (part.reports, 0)
    let note = part.isIdentified ? sent.note(in: snapshot().daemon.forward.namespaceText, now: time.uptime) : nil
    for _ in 0..<Self.attemptsMax {
      var (passing, wait): ([InputReport], Int) = ([], 0)
      await sink.submit(rest, run: part.run, note, userID: peer.accountID) { report, answer in
        guard let refusal = answer.refusal else { return }
        guard let milliseconds = refusal.retryMilliseconds, refusal != .stopping else {
          refusedCount += 1
          if refusal == .stopping { wait = .max }
          return
        }
        passing.append(report)
        wait = max(wait, milliseconds)
      }
      if wait == .max { return nil }
      if passing.isEmpty { return refusedCount }
      rest = passing
      do { try await time.sleep(for: .milliseconds(min(wait, Self.retryMillisecondsMax))) } catch { return nil }
    }
    return nil
  }
}
