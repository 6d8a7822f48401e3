public import PrismProtocol

/// A line of any answer, as it came: a newer daemon says more than this program knows.
public struct AnswerLine: Sendable {
  /// The whole line.
  public let json: JSONValue

  public init(_ json: JSONValue) { self.json = json }

  /// It is the answer to a report: the ingest socket was asked.
  public var isOfIngest: Bool { json["status"]?.string != nil }

  /// nil if the line has no such member.
  public subscript<Value: ControlValue>(member: AnswerMember<Value>) -> Value? {
    json[member.name].flatMap { Value(controlJSON: $0) }
  }
}

/// A member of an answer, with the type of its value: prismd writes it and prismctl reads it by the same one.
public struct AnswerMember<Value: ControlValue>: Sendable {
  let name: String

  /// As it is written.
  public func callAsFunction(_ value: Value) -> JSONValue.Member { .init(name, value.controlJSON) }
}

/// The members of answers. A command's answer has those of its row in docs/control-protocol.md.
public enum Answers {
  /// It is the last line.
  public static let done = AnswerMember<Bool>(name: "done")
  /// The reason why the command failed.
  public static let error = AnswerMember<Failure>(name: "error")
  /// Text for people, with line feeds.
  public static let text = AnswerMember<String>(name: "text")
  /// The answer to `status`.
  public static let status = AnswerMember<StatusReport>(name: "status")
  /// The same as it came: a newer daemon says more than this program knows.
  public static let statusDocument = AnswerMember<JSONValue>(name: "status")
  /// The answer to `network`.
  public static let network = AnswerMember<NetworkReport>(name: "network")
  /// Progress of `flush` with `wait`.
  public static let progress = AnswerMember<Progress>(name: "progress")
  /// Of `flush` with `wait`, and of `carry`: what no waiting gets going.
  public static let held = AnswerMember<[HeldReport]>(name: "held")
  /// Of `flush` with `wait`: the time was up first.
  public static let timedOut = AnswerMember<Bool>(name: "timedOut")
  /// The answer to `trace`.
  public static let rows = AnswerMember<[TraceReport]>(name: "rows")
  /// The answer to `dead-list`.
  public static let dead = AnswerMember<[DeadLetterReport]>(name: "dead")
  /// Of `dead-list`: records whose last change the server refused.
  public static let refusedRecords = AnswerMember<[RefusedRecordReport]>(name: "refusedRecords")
  /// The answer to `doctor`.
  public static let findings = AnswerMember<[Finding]>(name: "findings")
  /// One report of `tail`.
  public static let report = AnswerMember<TailReport>(name: "report")
  /// Reports that a slow reader of `tail` missed.
  public static let skipped = AnswerMember<Int>(name: "skipped")
  /// The number of rows that `remove` removed.
  public static let removed = AnswerMember<Int>(name: "removed")
  /// The answer to `config-show`.
  public static let configuration = AnswerMember<JSONValue>(name: "configuration")
  /// Of `config-show`: the daemon's file, from the root.
  public static let path = AnswerMember<String>(name: "path")
  /// Of `export`.
  public static let meta = AnswerMember<ExportedMeta>(name: "meta")
  /// Of `carry`: a file begins.
  public static let file = AnswerMember<CarriedFileReport>(name: "file")
  /// Of `carry`: a part of the file, in base64.
  public static let part = AnswerMember<String>(name: "part")
  /// Of `carry`: the sum at the end.
  public static let carried = AnswerMember<CarriedReport>(name: "carried")
  /// The answer to `carry-settle`.
  public static let settled = AnswerMember<[SettledReport]>(name: "settled")

  /// Why a request was not done.
  public struct Failure: ControlMessage, Error {
    /// The fault and its remedy, for people.
    public var message = "refused"
    /// The exit code of prismctl (sysexits.h).
    public var exitCode = 1

    public init() {}

    public init(_ exitCode: Int, _ message: String) { (self.exitCode, self.message) = (exitCode, message) }

    /// The last line of an answer: `{"error":{"message":…,"exitCode":…},"done":true}`.
    public var line: JSONValue { .object([Answers.error(self), Answers.done(true)]) }
  }

  /// Of `flush` with `wait`.
  public struct Progress: ControlMessage {
    /// Rows that are still waiting or claimed.
    public var waiting = 0
    /// Namespaces whose last attempt failed, and that are tried again.
    public var failing: [HeldReport] = []

    public init() {}
  }
}

/// A namespace whose packets do not get through: with `flush` and `wait`.
public struct HeldReport: ControlMessage {
  /// The namespace, and the cause.
  public var namespace = "?", cause = ""

  public init() {}

  public init(namespace: String, cause: String) { (self.namespace, self.cause) = (namespace, cause) }
}

/// The keys of an exported report's meta that prismctl reads.
public struct ExportedMeta: ControlMessage {
  /// Milliseconds since 1970; nil if the meta has no time.
  public var createTime: Int?
  /// nil if the meta has no id.
  public var reportID: String?

  private enum CodingKeys: String, CodingKey {
    case createTime = "CREATE_TIME"
    case reportID = "REPORT_ID"
  }

  public init() {}

  public static func leavesOut(_ key: String) -> Bool { true }
}
