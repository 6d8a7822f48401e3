/// A line of any answer, as prismctl reads it. A command's answer has the members of its row in docs/control-protocol.md.
public struct AnswerLine: ControlMessage {
  /// It is the last one.
  public var done = false
  public var error: Failure?
  public var text: String?
  public var status: StatusReport?
  /// The same as it came: a newer daemon says more than this program knows.
  public var statusDocument: JSONValue?
  public var network: NetworkReport?
  public var progress: Progress?
  public var rows: [TraceReport]?
  public var dead: [DeadLetterReport]?
  public var findings: [Finding]?
  public var report: TailReport?
  /// Reports that a slow reader of `tail` missed.
  public var skipped: Int?
  /// Of `flush` with `wait`: what no waiting gets going, and whether the time was up first.
  public var held: [HeldReport]?, timedOut: Bool?
  public var removed: Int?, requeued: Int?, dropped: Int?
  public var configuration: JSONValue?

  public init() {}

  public static let fields: [ControlField<AnswerLine>] = [
    .init(ifPresent: "error", \.error), .init(ifPresent: "text", \.text), .init(ifPresent: "status", \.status),
    .init(asItCame: "status", \.statusDocument),
    .init(ifPresent: "network", \.network), .init(ifPresent: "progress", \.progress), .init(ifPresent: "rows", \.rows),
    .init(ifPresent: "dead", \.dead), .init(ifPresent: "findings", \.findings), .init(ifPresent: "report", \.report),
    .init(ifPresent: "skipped", \.skipped), .init(ifPresent: "held", \.held), .init(ifPresent: "timedOut", \.timedOut),
    .init(ifPresent: "removed", \.removed),
    .init(ifPresent: "requeued", \.requeued), .init(ifPresent: "dropped", \.dropped),
    .init(ifPresent: "configuration", \.configuration), .init("done", \.done),
  ]

  /// Why a request was not done.
  public struct Failure: ControlMessage {
    public var message = "refused"
    /// What prismctl ends with.
    public var exitCode = 1

    public init() {}

    public static let fields: [ControlField<Failure>] = [.init("message", \.message), .init("exitCode", \.exitCode)]
  }

  /// Of `flush` with `wait`.
  public struct Progress: ControlMessage {
    public var waiting = 0

    public init() {}

    public static let fields: [ControlField<Progress>] = [.init("waiting", \.waiting)]
  }
}
