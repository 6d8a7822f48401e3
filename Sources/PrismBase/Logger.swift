import Synchronization

#if canImport(Glibc)
  public import Glibc
#endif

/// Writes events to standard error, one a line: `level message key=value…` (or one JSON object).
///
/// No report's content, key or token is passed to it. Strings of clients may be: values are escaped, so a line stays a
/// line. A fault that repeats is logged once, and once more when it ends, with its count. The logger never waits for a
/// reader: lines that are not taken are lost, and the next line that is taken follows their number.
public final class Logger: Sendable {
  /// The importance of a line; lines below the configured level are not written.
  public enum Level: String, Sendable, Comparable, CaseIterable {
    case debug, info, warning, error
    /// The number that a journal understands at the head of a line (sd-daemon(3)).
    var journalPriority: Int { self == .debug ? 7 : self == .info ? 6 : self == .warning ? 4 : 3 }
    public static func < (a: Level, b: Level) -> Bool { a.journalPriority > b.journalPriority }
  }

  /// The format of a line.
  public enum Format: String, Sendable, CaseIterable { case text, json }

  /// Names and values behind the message.
  public typealias Fields = KeyValuePairs<String, String>

  private struct State {
    var level: Level
    var format: Format
    /// A level that holds besides `level` until then, on the uptime clock: the more detailed one counts.
    var borrowed: (level: Level, until: Duration)?
    /// With their counts, and the text of one at level error.
    var faults: [String: (count: Int, error: String?)] = [:]
    var lost = 0
  }

  private let state: Mutex<State>
  private let time: any TimeSource
  private let toJournal: Bool
  private let offer: @Sendable (String) -> Bool

  /// - Parameter toJournal: a journal reads standard error (`JOURNAL_STREAM`): priorities instead of a time.
  /// - Parameter offer: takes one whole line with its line feed, or answers false; it does not wait.
  public init(
    level: Level = .info, format: Format = .text, toJournal: Bool = getenv("JOURNAL_STREAM") != nil,
    time: any TimeSource = SystemTime(), offer: @escaping @Sendable (String) -> Bool = StandardStreams.offer
  ) {
    state = Mutex(State(level: level, format: format))
    (self.time, self.toJournal, self.offer) = (time, toJournal, offer)
  }

  /// Takes effect with the next event; a reload calls it.
  public func set(level: Level, format: Format) {
    state.withLock {
      $0.level = level
      $0.format = format
    }
  }

  /// Writes events of `level` for a while, also if `set` is called meanwhile. It only ever adds events.
  public func borrow(_ level: Level, for duration: Duration) {
    let until = time.uptime + duration
    state.withLock { $0.borrowed = (level, until) }
  }

  /// Whether events of `level` are written now: for a caller whose fields cost something to make.
  public func writes(_ level: Level) -> Bool { state.withLock { writes(level, &$0) } }

  private func writes(_ level: Level, _ state: inout State) -> Bool {
    if level >= state.level { return true }
    guard let borrowed = state.borrowed else { return false }
    if time.uptime < borrowed.until { return level >= borrowed.level }
    state.borrowed = nil
    return false
  }

  public func debug(_ message: String, _ fields: Fields = [:]) { log(.debug, message, fields) }

  /// - Parameter first: fields that come before `fields`.
  public func debug(_ message: String, first: [(key: String, value: String)], _ fields: Fields) {
    emit(.debug, message, first.map { ($0.key, $0.value) } + fields.map { ($0.key, $0.value) })
  }

  public func info(_ message: String, _ fields: Fields = [:]) { log(.info, message, fields) }
  /// Logs a fault that the program recovers from.
  public func warning(_ message: String, _ fields: Fields = [:]) { log(.warning, message, fields) }
  /// Logs lost data, or a fault that a person must act on.
  public func error(_ message: String, _ fields: Fields = [:]) { log(.error, message, fields) }

  /// Writes one line, if `level` is at least the configured one.
  public func log(_ level: Level, _ message: String, _ fields: Fields = [:]) {
    emit(level, message, fields.map { ($0.key, $0.value) })
  }

  /// A change that a user asked for: written at every `log.level`, as `info`.
  public func audit(_ message: String, _ fields: [(key: String, value: String)]) {
    emit(.info, message, fields.map { ($0.key, $0.value) }, always: true)
  }

  /// A fault named `key` came (again): logged the first time only, until `faultEnded(key)`.
  public func fault(_ key: String, _ message: String, _ fields: Fields = [:], level: Level = .warning) {
    let isNew = state.withLock { state in
      state.faults[key, default: (0, nil)].count += 1
      guard state.faults[key]?.count == 1 else { return false }
      if level == .error { state.faults[key]?.error = Self.text(message, fields.map { ($0.key, $0.value) }) }
      return true
    }
    if isNew { log(level, message, fields) }
  }

  /// The faults at level error that have not ended, as their lines say them. - Parameter others: beginnings of keys to leave out.
  public func errors(but others: [String] = []) -> [String] {
    state.withLock { state in
      state.faults.filter { fault in !others.contains { fault.key.hasPrefix($0) } }.compactMap(\.value.error).sorted()
    }
  }

  /// The fault named `key` is over: says so with the count, if it had begun.
  public func faultEnded(_ key: String, _ message: String, _ fields: Fields = [:]) {
    guard let count = state.withLock({ $0.faults.removeValue(forKey: key)?.count }) else { return }
    emit(.info, message, fields.map { ($0.key, $0.value) } + [("times", String(count))])
  }

  private func emit(_ level: Level, _ message: String, _ fields: [(String, String)], always: Bool = false) {
    let begun = state.withLock { state -> (format: Format, lost: Int)? in
      guard always || writes(level, &state) else { return nil }
      defer { state.lost = 0 }
      return (state.format, state.lost)
    }
    guard let (format, lost) = begun else { return }
    if lost > 0 {
      let told = line(.warning, "log lines were lost: the reader did not take them", [("times", String(lost))], format)
      guard offer(told) else { return state.withLock { $0.lost += lost + 1 } }
    }
    if !offer(line(level, message, fields, format)) { state.withLock { $0.lost += 1 } }
  }

  private func line(_ level: Level, _ message: String, _ fields: [(String, String)], _ format: Format) -> String {
    let head = toJournal ? "<\(level.journalPriority)>" : ""
    let stamp = toJournal ? nil : RFC3339.text(unixMilliseconds: time.unixMilliseconds)
    switch format {
    case .text: return head + (stamp.map { $0 + " " } ?? "") + "\(level.rawValue) " + Self.text(message, fields) + "\n"
    case .json:
      let members = (stamp.map { [("time", $0)] } ?? []) + [("level", level.rawValue), ("message", message)] + fields
      return head + "{" + members.map { "\(quoted($0.0)):\(quoted($0.1))" }.joined(separator: ",") + "}\n"
    }
  }

  private static func text(_ message: String, _ fields: [(String, String)]) -> String {
    fields.reduce(OutputText.line(message)) { line, field in
      let plain =
        !field.1.isEmpty
        && field.1.utf8.allSatisfy {
          $0 > UInt8(ascii: " ") && $0 < 0x7F && $0 != UInt8(ascii: "\"") && $0 != UInt8(ascii: "\\")
        }
      return "\(line) \(field.0)=\(plain ? field.1 : quoted(field.1))"
    }
  }
}

/// A JSON string without control characters, so that no value can begin a line of its own.
private func quoted(_ text: String) -> String {
  var result = "\""
  for scalar in text.unicodeScalars {
    switch scalar {
    case "\"", "\\": result += "\\\(scalar)"
    case "\n": result += "\\n"
    case _ where OutputText.isControl(scalar): result += OutputText.jsonEscape(scalar)
    default: result.unicodeScalars.append(scalar)
    }
  }
  return result + "\""
}
