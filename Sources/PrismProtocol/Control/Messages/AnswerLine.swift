/// A line of any answer, as prismctl reads it. A command's answer has the members of its row in docs/control-protocol.md.
public struct AnswerLine: ControlMessage {
  /// It is the last one.
  public var done = false
  /// The reason why the command failed; nil if it did not.
  public var error: Failure?
  /// Text for people, with line feeds.
  public var text: String?
  /// The answer to `status`.
  public var status: StatusReport?
  /// The same as it came: a newer daemon says more than this program knows.
  public var statusDocument: JSONValue?
  /// The answer to `network`.
  public var network: NetworkReport?
  /// Progress of `flush` with `wait`.
  public var progress: Progress?
  /// The answer to `trace`.
  public var rows: [TraceReport]?
  /// The answer to `dead-list`.
  public var dead: [DeadLetterReport]?
  /// Of `dead-list`: records whose last change the server refused.
  public var refusedRecords: [RefusedRecordReport]?
  /// The answer to `doctor`.
  public var findings: [Finding]?
  /// One report of `tail`.
  public var report: TailReport?
  /// Reports that a slow reader of `tail` missed.
  public var skipped: Int?
  /// Of `flush` with `wait`, and of `carry`: what no waiting gets going. Of `flush`: whether the time was up first.
  public var held: [HeldReport]?, timedOut: Bool?
  /// The numbers of rows that `remove`, `dead-requeue` and `dead-drop` changed.
  public var removed: Int?, requeued: Int?, dropped: Int?
  /// The answer to `config-show`.
  public var configuration: JSONValue?
  /// Of `config-show`: the daemon's file, from the root.
  public var path: String?
  /// Of `export`.
  public var meta: ExportedMeta?
  /// Of `carry`: a file begins, a part of it in base64, and the sum at the end.
  public var file: CarriedFileReport?, part: String?, carried: CarriedReport?
  /// The answer to `carry-settle`.
  public var settled: [SettledReport]?

  public init() {}

  public static let fields: [ControlField<AnswerLine>] = [
    .init(ifPresent: "error", \.error), .init(ifPresent: "text", \.text), .init(ifPresent: "status", \.status),
    .init(asItCame: "status", \.statusDocument),
    .init(ifPresent: "network", \.network), .init(ifPresent: "progress", \.progress), .init(ifPresent: "rows", \.rows),
    .init(ifPresent: "dead", \.dead), .init(ifPresent: "refusedRecords", \.refusedRecords),
    .init(ifPresent: "findings", \.findings), .init(ifPresent: "report", \.report),
    .init(ifPresent: "skipped", \.skipped), .init(ifPresent: "held", \.held), .init(ifPresent: "timedOut", \.timedOut),
    .init(ifPresent: "removed", \.removed),
    .init(ifPresent: "requeued", \.requeued), .init(ifPresent: "dropped", \.dropped),
    .init(ifPresent: "configuration", \.configuration), .init(ifPresent: "path", \.path),
    .init(ifPresent: "meta", \.meta), .init(ifPresent: "file", \.file), .init(ifPresent: "part", \.part),
    .init(ifPresent: "carried", \.carried), .init(ifPresent: "settled", \.settled), .init("done", \.done),
  ]

  /// Why a request was not done.
  public struct Failure: ControlMessage {
    /// The fault and its remedy, for people.
    public var message = "refused"
    /// The exit code of prismctl (sysexits.h).
    public var exitCode = 1

    public init() {}

    public static let fields: [ControlField<Failure>] = [.init("message", \.message), .init("exitCode", \.exitCode)]
  }

  /// Of `flush` with `wait`.
  public struct Progress: ControlMessage {
    /// Rows that are still waiting or claimed.
    public var waiting = 0
    /// Namespaces whose last attempt failed, and that are tried again.
    public var failing: [HeldReport] = []

    public init() {}

    public static let fields: [ControlField<Progress>] = [.init("waiting", \.waiting), .init("failing", \.failing)]
  }
}
