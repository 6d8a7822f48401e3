import PrismBase
import Synchronization

/// The mark of a run beside its database: the starts of this boot. Each event changes it, and a start decides by it how to
/// open the database (docs/store.md, Starts that die).
///
/// A start that neither became ready nor was asked to stop died. Memory, a slow disk or the service manager may have
/// killed it as well as the database, so each guess at the database is taken back by the next death.
public struct StartHistory: Equatable, Sendable {
  /// How much is read of a database that is set aside for deaths.
  public enum Reading: Equatable, Sendable {
    case everything
    /// The ledger only: its reports count as `corrupt`, and stay in the file.
    case counts
    /// Nothing: how many reports it holds is not known.
    case nothing
  }

  public struct Start: Equatable, Sendable {
    /// The last run ended in order.
    public var wasClean = true
    /// A run had the database open, as far as its mark says: after an end in order that may be removed.
    public var hasOpened = false
    /// No power was lost since the end of the log was last known to be whole.
    public var isSameBoot = false
    /// Starts of this boot in a row that died.
    public var deaths = 0

    /// Of a process that had the database open before.
    public static let again = Start(hasOpened: true, isSameBoot: true)

    /// The database is set aside for the deaths; nil: it is used, and put back if it was set aside for those before.
    public var aside: Reading? {
      guard deaths % StartHistory.round == StartHistory.deathsMax else { return nil }
      return [.everything, .everything, .counts, .nothing][min(deaths / StartHistory.round, 3)]
    }
  }

  /// Deaths with the database, before one start without it.
  static let deathsMax = 3
  private static let round = deathsMax + 1
  /// A start that begins later than this after the one before it is the first in a new row.
  static let windowMilliseconds: Int64 = 60_000
  /// Past the last change of `aside`, whole rounds are forgotten.
  private static let startsMax = 5 * round

  private var bootID: String?
  private var logBootID: String?
  /// When the starts in a row began that are not ready, in milliseconds since 1970; the last one may still run.
  private var starts: [Int64] = []

  /// All that a mark says which is not removed at an end in order.
  static let ended = "clean\n"

  /// Before the first start, and after one that ended in order.
  init() {}

  /// Reads a mark. The collector wrote `running` before 0.3; a line with another first word is the boot id that version 0.1
  /// of the daemon wrote.
  init(_ text: String) {
    if text == Self.ended {
      logBootID = "ended"
      return
    }
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ", maxSplits: 1).map { String($0) }
      switch (words[0], words.count) {
      case ("boot", 2): bootID = words[1]
      case ("running", 2): (bootID, logBootID) = (words[1], words[1])
      case ("log", 2): logBootID = words[1]
      case ("start", 2): Int64(words[1]).map { starts.append($0) }
      case ("ready", 1), ("gave", 2): continue
      default: (bootID, logBootID) = (String(line), String(line))
      }
    }
    bootID = bootID ?? ""
  }

  var text: String {
    let heads = [bootID.map { "boot \($0)" }, logBootID.map { "log \($0)" }].compactMap { $0 }
    let lines = heads + (starts.isEmpty ? ["ready"] : starts.map { "start \($0)" })
    return lines.joined(separator: "\n") + "\n"
  }

  /// - Parameter bootID: the kernel's; empty if unknown, which counts as a new boot each time.
  mutating func begin(bootID: String, unixMilliseconds now: Int64) -> Start {
    let isSameBoot = !bootID.isEmpty && bootID == self.bootID
    var start = Start()
    (start.wasClean, start.hasOpened) = (self.bootID == nil, logBootID != nil)
    start.isSameBoot = !bootID.isEmpty && bootID == logBootID
    starts = isSameBoot ? row(endingAt: now) : []
    if starts.count >= Self.startsMax { starts.removeFirst(Self.round) }
    start.deaths = starts.count
    starts.append(now)
    self.bootID = bootID
    return start
  }

  /// The starts at the end that each came within the window of the next.
  private func row(endingAt now: Int64) -> [Int64] {
    var next = now
    return starts.reversed().prefix { start in
      defer { next = start }
      return abs(next.subtractingReportingOverflow(start).partialValue) <= Self.windowMilliseconds
    }.reversed()
  }

  /// The log's end is whole, or was cut to be.
  mutating func logIsWhole() { logBootID = bootID }
  /// The start that runs was asked to stop, or ends by itself: no death.
  mutating func stop() { _ = starts.popLast() }
  mutating func becomeReady() { starts = [] }
}

/// Keeps the mark of a run, a file: of a run that did not end in order it says how far it came. Written at once and synced; a
/// disk that fails it fails the database, too.
public final class StartMarker: Sendable {
  private enum Phase { case idle, starting, ready, over }

  private struct State {
    var history = StartHistory()
    var phase = Phase.idle
  }

  private let path: String
  private let isKept: Bool
  private let bootID: String
  private let state = Mutex(State())

  /// - Parameter isKept: at an end in order the file stays and says so; false: it is removed.
  /// - Parameter bootID: nil: the kernel's.
  public init(path: String, isKept: Bool, bootID: String? = nil) {
    (self.path, self.isKept) = (path, isKept)
    self.bootID =
      bootID ?? SideFile.text("/proc/sys/kernel/random/boot_id")?.filter { $0 != "\n" } ?? ""
  }

  /// A start begins.
  public func begin(unixMilliseconds now: Int64) -> StartHistory.Start {
    state.withLock { state in
      state.history = SideFile.text(path).map { StartHistory($0) } ?? StartHistory()
      state.phase = .starting
      let start = state.history.begin(bootID: bootID, unixMilliseconds: now)
      write(state.history)
      return start
    }
  }

  /// The log's end is whole, or was cut to be.
  public func logIsWhole() { change { $0.history.logIsWhole() } }

  /// Deaths from now on are not the database's doing.
  public func ready() {
    change { state in
      state.history.becomeReady()
      state.phase = .ready
    }
  }

  /// The database is open again after it was closed, or in a folder that was made again.
  public func reopened() {
    state.withLock { state in
      if state.phase == .over { state.phase = .ready }
      write(state.history)
    }
  }

  /// The start ends in order before it is ready: no death. Nothing if it is ready already. From any thread; nothing is
  /// written after it.
  public func stop() {
    change { state in
      guard state.phase == .starting else { return }
      state.history.stop()
      state.phase = .over
    }
  }

  /// The database is closed in order. Nothing if the start was stopped.
  public func end() {
    state.withLock { state in
      if state.phase != .over { isKept ? SideFile.write(StartHistory.ended, to: path) : SideFile.remove(path) }
      state.phase = .over
    }
  }

  private func change(_ body: (inout State) -> Void) {
    state.withLock { state in
      let before = state.history
      body(&state)
      if state.history != before { write(state.history) }
    }
  }

  private func write(_ history: StartHistory) { SideFile.write(history.text, to: path) }
}
