import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// Writes events to standard error, one a line: `level message key=value…` (or one JSON object).
///
/// A report's content, a key or a token is never passed to it. Client-given strings may be: values are escaped, so a
/// line stays a line. A fault that repeats is said once, and once more when it ends, with how often it came.
public final class Logger: Sendable {
  public enum Level: Int, Sendable, Comparable, CaseIterable {
    case debug, info, warning, error
    public var name: String { ["debug", "info", "warning", "error"][rawValue] }
    /// The number that a journal understands at the head of a line (sd-daemon(3)).
    var journalPriority: Int { [7, 6, 4, 3][rawValue] }
    public init?(name: String) {
      guard let level = Self.allCases.first(where: { $0.name == name }) else { return nil }
      self = level
    }
    public static func < (a: Level, b: Level) -> Bool { a.rawValue < b.rawValue }
  }

  public enum Format: String, Sendable { case text, json }

  public typealias Fields = KeyValuePairs<String, String>

  private struct State {
    var level: Level
    var format: Format
    var faults: [String: Int] = [:]
  }

  private let state: Mutex<State>
  private let time: any TimeSource
  private let toJournal: Bool
  private let write: @Sendable (String) -> Void

  /// - Parameter toJournal: a journal reads standard error (`JOURNAL_STREAM`): priorities instead of a timestamp.
  /// - Parameter write: takes one whole line with its line feed; tests pass an in-memory log.
  public init(
    level: Level = .info, format: Format = .text, toJournal: Bool = getenv("JOURNAL_STREAM") != nil,
    time: any TimeSource = SystemTime(), write: @escaping @Sendable (String) -> Void = Logger.writeToStandardError
  ) {
    state = Mutex(State(level: level, format: format))
    self.time = time
    self.toJournal = toJournal
    self.write = write
  }

  /// Takes effect with the next event; a reload calls it.
  public func set(level: Level, format: Format) {
    state.withLock {
      $0.level = level
      $0.format = format
    }
  }

  public func debug(_ message: String, _ fields: Fields = [:]) { log(.debug, message, fields) }
  public func info(_ message: String, _ fields: Fields = [:]) { log(.info, message, fields) }
  public func warning(_ message: String, _ fields: Fields = [:]) { log(.warning, message, fields) }
  public func error(_ message: String, _ fields: Fields = [:]) { log(.error, message, fields) }

  public func log(_ level: Level, _ message: String, _ fields: Fields = [:]) {
    emit(level, message, fields.map { ($0.key, $0.value) })
  }

  /// A fault named `key` came (again): logged the first time only, until `faultEnded(key)`.
  public func fault(_ key: String, _ message: String, _ fields: Fields = [:], level: Level = .warning) {
    let count = state.withLock { state in
      state.faults[key, default: 0] += 1
      return state.faults[key]
    }
    if count == 1 { log(level, message, fields) }
  }

  /// The fault named `key` is over: says so with the count, if it had begun.
  public func faultEnded(_ key: String, _ message: String, _ fields: Fields = [:]) {
    guard let count = state.withLock({ $0.faults.removeValue(forKey: key) }) else { return }
    emit(.info, message, fields.map { ($0.key, $0.value) } + [("times", String(count))])
  }

  private func emit(_ level: Level, _ message: String, _ fields: [(String, String)]) {
    let (threshold, format) = state.withLock { ($0.level, $0.format) }
    guard level >= threshold else { return }
    let body: String
    switch format {
    case .text: body = Self.textLine(level, message, fields)
    case .json: body = Self.jsonLine(level, message, fields)
    }
    write(prefix(level, format) + body + "\n")
  }

  private func prefix(_ level: Level, _ format: Format) -> String {
    if toJournal { return "<\(level.journalPriority)>" }
    return format == .text ? "\(time.unixMilliseconds) " : ""
  }

  private static func textLine(_ level: Level, _ message: String, _ fields: [(String, String)]) -> String {
    fields.reduce("\(level.name) \(message)") { line, field in
      let plain = !field.1.isEmpty && field.1.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C }
      return "\(line) \(field.0)=\(plain ? field.1 : quoted(field.1))"
    }
  }

  private static func jsonLine(_ level: Level, _ message: String, _ fields: [(String, String)]) -> String {
    let members = [("level", level.name), ("message", message)] + fields
    return "{" + members.map { "\(quoted($0.0)):\(quoted($0.1))" }.joined(separator: ",") + "}"
  }

  /// A JSON string; control characters are escaped, so nobody's value can begin a line of its own.
  private static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": result += "\\\(scalar)"
      case "\n": result += "\\n"
      case _ where scalar.value < 0x20 || (0x7F..<0xA0).contains(scalar.value):
        let hex = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - hex.count) + hex
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }

  public static let writeToStandardError: @Sendable (String) -> Void = { line in
    Array(line.utf8).withUnsafeBytes { bytes in
      var start = 0
      while start < bytes.count {
        let written = Glibc.write(STDERR_FILENO, bytes.baseAddress! + start, bytes.count - start)
        if written < 0 && errno == EINTR { continue }
        guard written > 0 else { return }  // nobody reads any more: a log must not stop the daemon
        start += written
      }
    }
  }
}
