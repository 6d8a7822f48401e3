import PrismProtocol

/// An operator's word about a group of crashes. A group without one is open.
struct CrashState: Sendable, Equatable {
  enum Condition: String, Sendable, CaseIterable {
    case open, resolved
    /// It was resolved, and a later report of it came.
    case regressed
  }

  let fingerprint: String
  var condition: Condition
  /// The operator who resolved or reopened it, as the log names operators.
  var who: String
  /// When the operator did, milliseconds since 1970.
  var changedTime: Int64
  /// The newest crash of the store at that time: later ones have higher ids.
  var report: Int64
  /// The build with the fix, as the app's name and version; nil: any later report is a regression.
  var build: String?
  /// The builds that crashed before. With `build`, they may go on crashing: old builds stay on devices.
  var builds: [String] = []
  /// When a later report was found, milliseconds since 1970.
  var regressedTime: Int64?

  /// Whether the newest report of one build shows that the crash is back.
  func isContradicted(by report: Int64, of name: String) -> Bool {
    report > self.report && (build == nil || name == build || !builds.contains(name))
  }

  var json: JSONValue {
    [
      "who": .string(who), "changedTime": .int(changedTime), "build": build.map { .string($0) } ?? .null,
      "regressedTime": regressedTime.map { .int($0) } ?? .null,
    ]
  }

  /// The builds as one text for a column.
  var buildsText: String { JSONValue.array(builds.map { .string($0) }).text }

  static func builds(_ text: String) -> [String] {
    (try? JSONValue(parsing: text))?.array?.compactMap(\.string) ?? []  // written by `buildsText`
  }
}
