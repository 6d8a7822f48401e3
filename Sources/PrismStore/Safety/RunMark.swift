/// A file that is there while the store is open: found at a start, it says that the last run did not end cleanly, and how
/// many starts in a row died before they were ready.
///
/// Its lines: the kernel's boot id; `start TIME` for each start that was not ready yet, `ready`, or `gave up` where the
/// database was set aside for the deaths that came before.
struct RunMark {
  /// So many deaths before READY, within so long, are the database's fault until proven otherwise.
  static let deathsMax = 3
  static let deathWindowMilliseconds: Int64 = 60_000

  /// What the runs before left.
  struct Past: Equatable {
    var wasClean = true
    /// No power was lost meanwhile: what was written is there, whole.
    var isSameBoot = false
    /// Starts that died before they were ready, within the window.
    var deaths = 0
    /// The database was set aside for deaths already, and they go on.
    var hasGivenUp = false

    var isDeathLoop: Bool { deaths >= RunMark.deathsMax }
  }

  private let path: String
  private let bootID: String

  init(folder: String) {
    path = folder + "/prism.run"
    bootID = SmallStateFile.read("/proc/sys/kernel/random/boot_id")?.filter { $0 != "\n" } ?? ""
  }

  func past(unixMilliseconds now: Int64) -> Past {
    guard let text = SmallStateFile.read(path) else { return Past() }
    let lines = text.split(separator: "\n").map { String($0) }
    var past = Past(wasClean: false, isSameBoot: !bootID.isEmpty && lines.first == bootID)
    past.hasGivenUp = lines.contains("gave up")
    past.deaths = starts(lines).count { abs(now - $0) <= Self.deathWindowMilliseconds }
    return past
  }

  private func starts(_ lines: [String]) -> [Int64] {
    lines.compactMap { $0.hasPrefix("start ") ? Int64($0.dropFirst(6)) : nil }
  }

  /// A start begins.
  func begin(unixMilliseconds now: Int64) {
    let lines = (SmallStateFile.read(path) ?? "").split(separator: "\n").map { String($0) }
    let starts = (starts(lines) + [now]).suffix(Self.deathsMax).map { "start \($0)" }
    write((lines.contains("gave up") ? ["gave up"] : []) + starts)
  }

  /// Deaths are counted anew.
  func gaveUp(unixMilliseconds now: Int64) { write(["gave up", "start \(now)"]) }
  /// It ended in order, for a reason of its own.
  func forgetStart() {
    let lines = (SmallStateFile.read(path) ?? "").split(separator: "\n").dropFirst().map { String($0) }
    write(lines.last?.hasPrefix("start ") == true ? lines.dropLast() : lines)
  }
  func ready() { write(["ready"]) }
  func end() { SmallStateFile.remove(path) }

  private func write(_ lines: [String]) {
    SmallStateFile.write(([bootID] + lines).joined(separator: "\n") + "\n", to: path)
  }
}
