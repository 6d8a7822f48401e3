import PrismBase
public import PrismProtocol

/// A report that was admitted or refused, as `prismctl tail` follows them: nothing of its content.
public struct ReportEvent: Sendable, Equatable {
  /// The decision about the report.
  public enum Outcome: Sendable, Equatable {
    case stored
    /// Its client gave an id that is known.
    case duplicate
    /// The `sample` of its type leaves it out.
    case sampled
    /// Counted on the row of an equal report.
    case collapsed
    case refused(RefusalCode)
  }

  /// Milliseconds since 1970.
  public var time: Int64
  /// The decision about the report.
  public var outcome: Outcome
  /// The names that the report gives itself.
  public var name: ReportName
  /// Of the merged meta; nil where it was refused before it was merged.
  public var metaBytes: Int?
  /// nil: no payload, or refused before.
  public var payloadBytes: Int?

  /// The protocol that a client spoke in place of a report, for people; nil for a report.
  public var foreign: String?
  /// The client's user and process, for people.
  public var peer: String?

  /// An event at `time`.
  public init(time: Int64, outcome: Outcome, name: ReportName, metaBytes: Int? = nil, payloadBytes: Int? = nil) {
    (self.time, self.outcome, self.name) = (time, outcome, name)
    (self.metaBytes, self.payloadBytes) = (metaBytes, payloadBytes)
  }

  /// The form that `prismctl tail` gets.
  public var report: TailReport {
    var report = TailReport()
    report.time = RFC3339.text(unixMilliseconds: time)
    switch outcome {
    case .stored: report.outcome = "stored"
    case .duplicate: report.outcome = "duplicate"
    case .sampled: report.outcome = "sampled"
    case .collapsed: report.outcome = "collapsed"
    case .refused(let code): (report.outcome, report.code) = ("refused", code.rawValue)
    }
    (report.namespace, report.type, report.reportId) = (name.namespace, name.type, name.reportID)
    (report.metaBytes, report.payloadBytes) = (metaBytes, payloadBytes)
    (report.foreign, report.peer) = (foreign, peer)
    return report
  }
}

/// The names that a report gives itself. Of a refused one these are a client's own words: any text, cut to a name's length.
public struct ReportName: Sendable, Equatable {
  private static let charactersMax = 128

  /// nil: it could not be read.
  public var namespace: String?, type: String?
  /// nil: the client gave no id.
  public var reportID: String?

  /// The names as they were given.
  public init(namespace: String?, type: String?, reportID: String?) {
    (self.namespace, self.type, self.reportID) = (namespace, type, reportID)
  }

  init(_ report: ScannedReport, in line: Span<UInt8>) {
    func cut(_ text: ScannedString?) -> String? { text.map { String($0.string(in: line).prefix(Self.charactersMax)) } }
    self.init(
      namespace: cut(report.namespace) ?? NamespaceName.prism.text, type: cut(report.type),
      reportID: cut(report.reportID))
  }
}
