import PrismBase
import Synchronization

/// The content of `prism.run`: the starts of this boot. Each event changes it, and a start decides by it how to open
/// the database (docs/store.md, Starts that die).
///
/// A start that neither became ready nor was asked to stop died. Memory, a slow disk or the service manager may have
/// killed it as well as the database, so each guess at the database is taken back by the next death.
struct StartHistory: Equatable, Sendable {
  /// How much is read of a database that is set aside for deaths.
  enum Reading: Equatable, Sendable {
    case everything
    /// The ledger only: its reports count as `corrupt`, and stay in the file.
    case counts
    /// Nothing: how many reports it holds is not known.
    case nothing
  }

  enum Attempt: Equatable, Sendable {
    /// With the database, put back if it was set aside for the deaths before.
    case inPlace
    case aside(Reading)
  }

  struct Start: Equatable, Sendable {
    /// The last run ended in order.
    var wasClean = true
    /// No power was lost since the end of the log was last known to be whole.
    var isSameBoot = false
    /// Starts of this boot in a row that died.
    var deaths = 0

    var attempt: Attempt {
      guard deaths % StartHistory.round == StartHistory.deathsMax else { return .inPlace }
      switch deaths / StartHistory.round {
      case 0, 1: return .aside(.everything)
      case 2: return .aside(.counts)
      default: return .aside(.nothing)
      }
    }
  }

  /// Deaths with the database, before one start without it.
  static let deathsMax = 3
  private static let round = deathsMax + 1
  /// A start that begins later than this after the one before it is the first in a new row.
  static let windowMilliseconds: Int64 = 60_000
  /// Past the last change of `attempt`, whole rounds are forgotten.
  private static let startsMax = 5 * round

  private var bootID: String?
  private var logBootID: String?
  /// When the starts in a row began that are not ready, in milliseconds since 1970; the last one may still run.
  private var starts: [Int64] = []

  /// Before the first start, and after one that ended in order.
  init() {}

  /// Reads the content of `prism.run`. A line with an unknown first word is the boot id that version 0.1 wrote.
  init(_ text: String) {
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ", maxSplits: 1).map { String($0) }
      switch (words[0], words.count) {
      case ("boot", 2): bootID = words[1]
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
    var start = Start(wasClean: self.bootID == nil, isSameBoot: !bootID.isEmpty && bootID == logBootID)
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

/// Keeps `prism.run` in the state folder: the file is there while the store is open, and says of a run that did not end in
/// order how far it came. Written at once and synced; a disk that fails it fails the database, too.
public final class StartMarker: Sendable {
  private enum Phase { case idle, starting, ready, over }

  private struct State {
    var history = StartHistory()
    var phase = Phase.idle
  }

  private let path: String
  private let bootID: String
  private let state = Mutex(State())

  /// - Parameter bootID: nil: the kernel's.
  public init(folder: String, bootID: String? = nil) {
    path = folder + "/prism.run"
    self.bootID =
      bootID ?? SideFile.text("/proc/sys/kernel/random/boot_id")?.filter { $0 != "\n" } ?? ""
  }

  func begin(unixMilliseconds now: Int64) -> StartHistory.Start {
    state.withLock { state in
      state.history = SideFile.text(path).map { StartHistory($0) } ?? StartHistory()
      state.phase = .starting
      let start = state.history.begin(bootID: bootID, unixMilliseconds: now)
      write(state.history)
      return start
    }
  }

  func logIsWhole() {
    change { state in
      let before = state.history
      state.history.logIsWhole()
      return state.history != before
    }
  }

  /// Deaths from now on are not the database's doing.
  func ready() {
    change { state in
      state.history.becomeReady()
      state.phase = .ready
      return true
    }
  }

  /// The database is open again after it was closed, or in a folder that was made again.
  func reopened() {
    change { state in
      if state.phase == .over { state.phase = .ready }
      return true
    }
  }

  /// The start ends in order before it is ready: no death. Nothing if it is ready already. From any thread; nothing is
  /// written after it.
  public func stop() {
    change { state in
      guard state.phase == .starting else { return false }
      state.history.stop()
      state.phase = .over
      return true
    }
  }

  /// The database is closed in order: the file goes. Nothing if the start was stopped.
  func end() {
    state.withLock { state in
      if state.phase != .over { SideFile.remove(path) }
      state.phase = .over
    }
  }

  /// - Parameter body: answers whether the file is to be written.
  private func change(_ body: (inout State) -> Bool) {
    state.withLock { if body(&$0) { write($0.history) } }
  }

  private func write(_ history: StartHistory) { SideFile.write(history.text, to: path) }
}
