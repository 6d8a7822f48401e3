public import PrismProtocol

/// A report that `tail` follows: nothing of its content. Of a refused one the names are its client's own words.
public struct TailReport: ControlMessage {
  /// The time of the answer, RFC 3339.
  public var time = ""
  /// `stored`, `duplicate` or `refused`.
  public var outcome = "?"
  /// The code of the refusal; nil if the report was stored.
  public var code: String?
  /// nil: it could not be read.
  public var namespace: String?, type: String?, reportId: String?
  /// nil: it was refused before it had any.
  public var metaBytes: Int?, payloadBytes: Int?
  /// The protocol that a client spoke in place of a report; nil for a report.
  public var foreign: String?
  /// The user and the process of that client; nil for a report.
  public var peer: String?

  public init() {}

  /// Whether the report was refused.
  public var isRefused: Bool { outcome == "refused" }
}
