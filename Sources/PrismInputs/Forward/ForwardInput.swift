package import PrismAdmission
public import PrismBase
public import PrismConfig
import PrismControl
import PrismPacket
package import PrismProtocol

/// Fluent's forward protocol (docs/forward.md): each event becomes a report.
///
/// Messages are decoded on a queue of its own, one at a time.
public actor ForwardInput {
  private nonisolated let executor = DispatchQueueExecutor(label: "prism.forward")
  /// The queue that decodes.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// How long the next part of a line is waited for.
  private static let lineTime: Duration = .seconds(2)
  /// How often events that may be taken later are tried before the connection ends without their acknowledgement.
  static let attemptsMax = 10
  private static let retryMillisecondsMax = 2000
  /// The same of a message that others wait for.
  static let largeAttemptsMax = 2
  private static let awaitedTypesMax = 16

  private let snapshot: @Sendable () -> Snapshot
  private let time: any TimeSource
  private let log: Logger
  private var sent = SentRequests(name)
  private let lines = ForwardParts.Lines()
  private var isWatchingLines = false
  /// Types that the log says events wait for.
  private var awaitedTypes: Set<String> = []

  /// - Parameter snapshot: the configuration in force, asked for each connection and message.
  public init(time: any TimeSource = SystemTime(), log: Logger, snapshot: @escaping @Sendable () -> Snapshot) {
    (self.time, self.log, self.snapshot) = (time, log, snapshot)
  }

  /// The name of its messages in counters.
  package static let name = "forward"

  /// The state of a new connection.
  package nonisolated func makeStream(isTCP: Bool) -> ForwardStream {
    let key = isTCP ? snapshot().daemon.forward.sharedKey : nil
    return ForwardStream(key: key.map { SharedKey(text: $0.bytes) })
  }

  /// The requests whose answers are lost, when all connections have ended; nil: there was no request.
  package func lastNote() -> BatchNote? { sent.lastNote(in: snapshot().daemon.forward.namespaceText, now: time.uptime) }

  /// Answers a request, after the commit of its reports.
  package func answer(
    _ request: InputRequest, from peer: ReportingPeer, to sink: any SubmissionSink
  ) async -> InputAnswer {
    let messages: [ForwardReports]
    if !sent.isLoaded {
      let note = await sent.stored(by: sink, in: snapshot().daemon.forward.namespaceText)
      sent.load(note, now: time.uptime)
    }
    do throws(ForwardMessage.Fault) {
      messages = try read(request, peer)
    } catch {
      if error == .compression { refused("option.compressed must be gzip, zstd or text") }
      return InputAnswer(status: 400, body: [], mustClose: true)
    }
    let answer =
      if isSmall(request, messages) {
        await submit(messages, attemptsMax: Self.attemptsMax, peer, sink)
      } else {
        await LargeTurns.shared.run(for: peer.accountID) {
          await self.submit(messages, attemptsMax: Self.largeAttemptsMax, peer, sink)
        }
      }
    if answer.mustClose { request.receipt.settle(.lost) }
    return answer
  }

  /// Whether the memory that is reserved for the request is enough for its messages.
  private func isSmall(_ request: InputRequest, _ messages: [ForwardReports]) -> Bool {
    guard request.body.count <= request.roomBytes else { return false }
    return messages.allSatisfy { message in
      guard case .packed(let encoding) = message.message.form else { return true }
      // A few bytes of zstd may ask for a window of 8 MiB.
      guard encoding == .gzip else { return false }
      do throws(PacketError) {
        _ = try PackedReader.unpack(request.body[message.message.events], encoding, bytesMax: request.roomBytes)
      } catch { return error != .tooLarge }
      return true
    }
  }

  private func read(_ request: InputRequest, _ peer: ReportingPeer) throws(ForwardMessage.Fault) -> [ForwardReports] {
    let (body, configuration) = (request.body, snapshot().daemon.forward)
    var (start, messages): (Int, [ForwardReports]) = (0, [])
    while start < body.count {
      let message = try ForwardMessage(from: start, of: body.span)
      let content = start == 0 && message.end == body.count ? body : Array(body[start..<message.end])
      let idPrefix = message.chunk.flatMap { _ in
        sent.prefix(of: content, "f", from: peer.accountID, request.receipt, now: time.uptime)
      }
      messages.append(ForwardReports(message, of: body, configuration, peer: peer, idPrefix: idPrefix))
      start = message.end
    }
    return messages
  }

  private nonisolated func refused(_ cause: String) {
    log.fault("forward.message", "a message of the forward protocol is not acknowledged", ["cause": cause])
  }

  /// Waits until every event is stored, or is refused for good. The messages' acknowledgements come together.
  private func submit(
    _ messages: [ForwardReports], attemptsMax: Int, _ peer: ReportingPeer, _ sink: any SubmissionSink
  ) async -> InputAnswer {
    var (parts, refusedCount) = (ForwardParts(messages, lines, now: time.uptime), 0)
    while let part = parts.next() {
      guard let refused = await submit(part, attemptsMax: attemptsMax, peer.accountID, sink) else {
        return InputAnswer(status: 503, body: [], mustClose: true)
      }
      refusedCount += refused
    }
    if let fault = parts.fault {
      refused(fault)
      return InputAnswer(status: 400, body: [], mustClose: true)
    }
    watchLines(sink)
    log.faultEnded("forward.message", "messages of the forward protocol are acknowledged again")
    if parts.unusableCount > 0 {
      refusedCount += parts.unusableCount
      let refusal = Refusal(.badRequest, "an event is no [time, record], or too deep")
      let namespace = snapshot().daemon.forward.namespaceText
      await sink.refuse(refusal, count: parts.unusableCount, type: nil, namespace: namespace)
    }
    let acknowledgements = messages.compactMap(\.message.chunk).flatMap { Self.acknowledgement(of: $0) }
    return InputAnswer(status: refusedCount == 0 ? 200 : 422, body: acknowledgements)
  }

  /// Reports lines whose rest does not come.
  private func watchLines(_ sink: any SubmissionSink) {
    guard !lines.isEmpty, !isWatchingLines else { return }
    isWatchingLines = true
    Task {
      while !lines.isEmpty {
        try? await time.sleep(for: Self.lineTime)  // cancelled: then at once
        for line in lines.takeOld(before: time.uptime - Self.lineTime / 2) {
          var part = InputPart()
          let (message, event) = line.origin
          part.append(message.report(event, line.members(isWhole: false), 0), bytes: 0)
          _ = await submit(part, attemptsMax: Self.attemptsMax, message.accountID, sink)
        }
      }
      isWatchingLines = false
    }
  }

  /// `{"ack": chunk}`.
  private static func acknowledgement(of chunk: [UInt8]) -> [UInt8] {
    var result: [UInt8] = [0x81]
    result.append(msgpack: "ack")
    return result + chunk
  }

  /// Names a type once, until its events are taken.
  private func noteWaiting(_ report: Submission, _ refusal: Refusal) {
    let name = report.name
    guard let type = name.type, awaitedTypes.count < Self.awaitedTypesMax, awaitedTypes.insert(type).inserted else {
      return
    }
    log.warning(
      "events of the forward protocol wait at their sender until their namespace and type are configured",
      ["namespace": name.namespace ?? "", "type": type, "cause": refusal.message])
  }

  private func noteTaken(_ report: Submission) {
    guard !awaitedTypes.isEmpty, let type = report.name.type, awaitedTypes.remove(type) != nil else { return }
    log.info("events of the forward protocol are taken again", ["type": type])
  }

  /// - Returns: events that are refused for good; nil if some are not stored, and the daemon stops or has tried often.
  private func submit(
    _ part: InputPart, attemptsMax: Int, _ userID: UInt32, _ sink: any SubmissionSink
  ) async -> Int? {
    var (rest, refusedCount) = (part.reports, 0)
    let note = part.isIdentified ? sent.note(in: snapshot().daemon.forward.namespaceText, now: time.uptime) : nil
    for _ in 0..<attemptsMax {
      var (passing, wait): ([Submission], Int) = ([], 0)
      let group = SubmissionGroup(rest, note: note, run: part.run, userID: userID, isReserved: true)
      for (report, answer) in zip(rest, await sink.submit(group)) {
        guard let refusal = answer.refusal else {
          noteTaken(report)
          continue
        }
        if refusal == .stopping { return nil }
        if let milliseconds = refusal.retryMilliseconds {
          if refusal.code.waitsForConfiguration { noteWaiting(report, refusal) }
          passing.append(report)
          wait = max(wait, milliseconds)
        } else {
          refusedCount += 1
        }
      }
      if passing.isEmpty { return refusedCount }
      rest = passing
      do { try await time.sleep(for: .milliseconds(min(wait, Self.retryMillisecondsMax))) } catch { return nil }
    }
    return nil
  }
}
