package import PrismAdmission
public import PrismBase
public import PrismConfig
import PrismProtocol

/// Syslog (docs/statsd-syslog.md): each message becomes a report.
public actor SyslogInput {
  private nonisolated let executor = DispatchQueueExecutor(label: "prism.syslog")
  /// The queue that decodes.
  public nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// The name of its messages in counters, and their type.
  package static let name = "syslog"

  /// Its sender can't send a message again.
  private static let mending: Mending = {
    var mending = Mending()
    (mending.cuts, mending.marks, mending.waits) = (true, true, Mending.untilConfigured)
    return mending
  }()

  private let snapshot: @Sendable () -> Snapshot
  private let time: any TimeSource
  private let log: Logger
  private var sources = PeerSources {
    SubmissionSource(peer: $0, mending: SyslogInput.mending, sessionID: SyslogInput.name)
  }

  /// The namespace is not known to be missing for longer than a moment.
  private var awaitsNamespace = true

  /// - Parameter snapshot: the configuration in force, asked for all that comes together.
  public init(time: any TimeSource = SystemTime(), log: Logger, snapshot: @escaping @Sendable () -> Snapshot) {
    (self.time, self.log, self.snapshot) = (time, log, snapshot)
  }

  /// Takes datagrams to their commit. - Returns: messages by what became of them.
  package func take(
    _ datagrams: [Datagram], to sink: any SubmissionSink
  ) async -> [IngestCounters.Message.Outcome: Int] {
    await take(datagrams, to: sink, waits: false).counts
  }

  /// Takes messages of a connection to their commit. While they can't be stored the connection is not read.
  package func answer(
    _ request: InputRequest, from peer: ReportingPeer, to sink: any SubmissionSink
  ) async -> (answer: InputAnswer, counts: [IngestCounters.Message.Outcome: Int]) {
    let messages = SyslogStream.messages(of: request.body).map { Datagram($0.bytes, isCut: $0.isCut, from: peer) }
    let (counts, isDone) = await take(messages, to: sink, waits: true)
    return (InputAnswer(status: isDone ? 200 : 503, body: [], mustClose: !isDone), counts)
  }

  private func take(
    _ datagrams: [Datagram], to sink: any SubmissionSink, waits: Bool
  ) async -> (counts: [IngestCounters.Message.Outcome: Int], isDone: Bool) {
    let configuration = snapshot().daemon.syslog
    var (reports, isDone) = (UnansweredReports(awaitsNamespace: awaitsNamespace), true)
    for (index, datagram) in datagrams.enumerated() {
      let message = SyslogMessage(datagram.bytes, isCut: datagram.isCut)
      let type = configuration.type(of: message.appName) ?? Self.name
      reports.add(
        Submission(
          type, in: configuration.namespace, members: message.members.span, createdTime: message.createdTime,
          from: sources.source(of: datagram.peer)))
      guard reports.isFull || index == datagrams.count - 1 else { continue }
      isDone = await reports.submit(to: sink, waits: waits, time) && isDone
    }
    awaitsNamespace = reports.awaitsNamespace
    if let refusal = reports.refusal, reports.refused > 0, refusal != .stopping {
      log.fault("syslog.refused", "messages of syslog are refused", ["cause": refusal.message])
    } else {
      log.faultEnded("syslog.refused", "messages of syslog are taken again")
    }
    return ([.stored: reports.stored, .refused: reports.refused, .cut: datagrams.count(where: \.isCut)], isDone)
  }
}
