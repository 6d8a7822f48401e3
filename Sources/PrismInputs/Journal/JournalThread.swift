import CLinux
import Dispatch
import Glibc
public import PrismAdmission
public import PrismBase
public import PrismConfig
import PrismProtocol
import Synchronization

/// The thread that reads the journal: libsystemd blocks, and its journals belong to one thread.
final class JournalThread: Sendable {
  static let noteKey = "journal.cursor"
  private static let faultKey = "journal", refusedKey = "journal.refused", waitingKey = "journal.waiting"
  private static let entriesMax = 256
  private static let batchBytesMax = 512 * 1024
  /// Between two attempts to open the journal.
  private static let openPauseMilliseconds: Int32 = 30_000
  private static let retryMillisecondsMax = 5000
  /// How long the next part of a container's line is waited for.
  private static let lineTime: Duration = .seconds(2)
  private static let linePauseMilliseconds: Int32 = 1000

  private let settings: DaemonConfiguration.Journal
  private let namespace: NamespaceName
  private let sink: any SubmissionSink
  private let time: any TimeSource
  private let log: Logger
  private let executable = SymbolicLink.ownExecutable
  /// An eventfd: it can be read once the thread is to end.
  private let wake = prism_event_new()
  private let isStopped = Atomic<Bool>(false)
  /// The thread waits for it.
  private let call = Mutex<Task<Void, Never>?>(nil)
  private let (ended, end) = AsyncStream.makeStream(of: Void.self)

  /// The thread runs from now on.
  init(_ settings: DaemonConfiguration.Journal, sink: any SubmissionSink, time: any TimeSource, log: Logger) {
    (self.settings, self.sink, self.time, self.log) = (settings, sink, time, log)
    namespace = NamespaceName(settings.namespace ?? DaemonConfiguration.Journal.namespaceDefault) ?? .prism
    let code = DetachedThread.start { self.run() }
    if code == 0 { return }
    log.error("the journal can't be read", ["cause": "no thread: \(String(cString: strerror(code)))"])
    end.finish()
  }

  deinit { close(wake) }

  func stop() async {
    isStopped.store(true, ordering: .releasing)
    var one: UInt64 = 1
    _ = write(wake, &one, 8)
    call.withLock { $0?.cancel() }
    for await _ in ended {}
  }

  // MARK: On the thread

  private func run() {
    while !isStopped.load(ordering: .acquiring) {
      do throws(SystemJournal.Fault) {
        let journal = try SystemJournal(settings)
        try goToPlace(journal)
        if journal.hasFiles {
          log.faultEnded(Self.faultKey, "the journal can be read again")
        } else {
          let action = "add SupplementaryGroups=systemd-journal to the unit (docs/journal.md), then restart prismd"
          log.fault(
            Self.faultKey, "the journal has no file that prismd may read", ["action": action], level: .error)
        }
        try report(journal)
      } catch {
        log.fault(Self.faultKey, "the journal can't be read", ["cause": error.reason], level: .error)
        pause(Self.openPauseMilliseconds)
      }
    }
    end.finish()
  }

  private func goToPlace(_ journal: SystemJournal) throws(SystemJournal.Fault) {
    let (sink, namespace) = (sink, namespace)
    let cursor = wait { await sink.note(Self.noteKey, of: namespace) }
    guard let cursor = cursor ?? nil else {
      return try journal.goTo(time.unixMilliseconds - Int64(settings.since / .milliseconds(1)))
    }
    try journal.goBehind(String(decoding: cursor, as: UTF8.self))
  }

  private func report(_ journal: SystemJournal) throws(SystemJournal.Fault) {
    var (reports, cursor, last) = (JournalReports(namespace: namespace.text), "", "")
    while !isStopped.load(ordering: .acquiring) {
      var (batch, bytes, isRead): ([Submission], Int, Bool) = ([], 0, false)
      while batch.count < Self.entriesMax, bytes < Self.batchBytesMax, let entry = try journal.next() {
        (isRead, last) = (true, entry.cursor)
        if entry.isDebugLine(of: executable) { continue }
        if let report = reports.take(entry, now: time.uptime) {
          batch.append(report)
          bytes += report.bytes
        }
        // The parts of a line are read again after a crash, as long as the line is not whole.
        if reports.isWhole { cursor = last }
      }
      batch += reports.takeOld(before: time.uptime - Self.lineTime)
      if reports.isWhole { cursor = last }
      if isRead { log.faultEnded(Self.faultKey, "the journal can be read again") }
      if !batch.isEmpty {
        submit(batch, cursor)
      } else if !isRead {
        try journal.wait(
          milliseconds: reports.isWhole ? Self.openPauseMilliseconds : Self.linePauseMilliseconds, or: wake)
      }
    }
  }

  /// Until every entry is stored, or is refused for good.
  private func submit(_ batch: [Submission], _ cursor: String) {
    let place = BatchNote(namespace: namespace, key: Self.noteKey, value: Array(cursor.utf8))
    let note = cursor.isEmpty ? nil : place
    let group = SubmissionGroup(batch, note: note, userID: geteuid())
    while !isStopped.load(ordering: .acquiring) {
      let sink = sink
      guard let answers = wait({ await sink.submit(group) }) else { return }
      let refusals = answers.compactMap(\.refusal)
      if let final = refusals.first(where: { $0.retryMilliseconds == nil && $0 != .stopping }) {
        log.fault(
          Self.refusedKey, "entries of the journal are refused",
          ["namespace": namespace.text, "cause": final.message])
      }
      let waiting = refusals.first { $0.code.waitsForConfiguration }
      if let waiting, waiting.retryMilliseconds != nil {
        log.fault(
          Self.waitingKey, "entries of the journal wait until their namespace and type are configured",
          ["namespace": namespace.text, "cause": waiting.message])
      } else {
        log.faultEnded(Self.waitingKey, "entries of the journal are taken again")
      }
      guard let retry = refusals.compactMap(\.retryMilliseconds).max() else { return }
      pause(Int32(min(retry, Self.retryMillisecondsMax)))
    }
  }

  /// Waits, but not longer than until the end.
  private func pause(_ milliseconds: Int32) {
    var entry = pollfd(fd: wake, events: Int16(POLLIN), revents: 0)
    poll(&entry, 1, milliseconds)
  }

  /// Has a task do what can't be done on this thread. - Returns: nil if the end came before it began.
  private func wait<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) -> Value? {
    let (done, value) = (DispatchSemaphore(value: 0), Answer<Value>())
    let isBegun = call.withLock { call in
      guard !isStopped.load(ordering: .acquiring) else { return false }
      call = Task {
        value.set(await body())
        done.signal()
      }
      return true
    }
    guard isBegun else { return nil }
    done.wait()
    return value.get()
  }
}

private final class Answer<Value: Sendable>: Sendable {
  private let value = Mutex<Value?>(nil)
  func set(_ new: Value) { value.withLock { $0 = new } }
  func get() -> Value? { value.withLock { $0 } }
}

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
