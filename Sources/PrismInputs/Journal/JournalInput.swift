public import PrismAdmission
public import PrismBase
public import PrismConfig

/// systemd's journal (docs/journal.md): each entry that is configured becomes a report, once. The place in the journal is
/// stored in the transaction of the reports.
public actor JournalInput {
  private let sink: any SubmissionSink
  private let time: any TimeSource
  private let log: Logger
  private var settings = DaemonConfiguration.Journal()
  private var thread: JournalThread?

  /// Nothing is read before `follow`.
  public init(sink: any SubmissionSink, time: any TimeSource = SystemTime(), log: Logger) {
    (self.sink, self.time, self.log) = (sink, time, log)
  }

  /// Reads as it is configured from now on, or nothing.
  public func follow(_ new: DaemonConfiguration.Journal) async {
    guard settings != new else { return }
    await stop()
    settings = new
    guard new.isOn else { return }
    thread = JournalThread(new, sink: sink, time: time, log: log)
  }

  /// Reads nothing more. Entries that are on their way and not answered are read again after the next start.
  public func stop() async {
    settings = .init()
    await thread?.stop()
    thread = nil
  }
}
