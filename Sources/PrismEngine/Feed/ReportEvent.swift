public import PrismProtocol

/// A report that was admitted or refused, as `prismctl tail` follows them: nothing of its content.
public struct ReportEvent: Sendable, Equatable {
  public enum Outcome: Sendable, Equatable {
    case stored
    /// Its client gave an id that is known.
    case duplicate
    case refused(RefusalCode)
  }

  /// Milliseconds since 1970.
  public var time: Int64
  public var outcome: Outcome
  public var name: ReportName
  /// Of the merged meta; nil where it was refused before it was merged.
  public var metaBytes: Int?
  /// nil: no payload, or refused before.
  public var payloadBytes: Int?

  public init(time: Int64, outcome: Outcome, name: ReportName, metaBytes: Int? = nil, payloadBytes: Int? = nil) {
    (self.time, self.outcome, self.name) = (time, outcome, name)
    (self.metaBytes, self.payloadBytes) = (metaBytes, payloadBytes)
  }

  /// `{"time":…,"outcome":"refused","code":…,"namespace":…,"type":…,"reportId":…,"metaBytes":…,"payloadBytes":…}`
  var json: JSONValue {
    let code: JSONValue
    let outcome: String
    switch self.outcome {
    case .stored: (outcome, code) = ("stored", .null)
    case .duplicate: (outcome, code) = ("duplicate", .null)
    case .refused(let refusal): (outcome, code) = ("refused", .string(refusal.rawValue))
    }
    func text(_ value: String?) -> JSONValue { value.map { .string($0) } ?? .null }
    return [
      "time": .string(RFC3339.text(unixMilliseconds: time)), "outcome": .string(outcome), "code": code,
      "namespace": text(name.namespace), "type": text(name.type), "reportId": text(name.reportID),
      "metaBytes": metaBytes.map { .int($0) } ?? .null, "payloadBytes": payloadBytes.map { .int($0) } ?? .null,
    ]
  }
}

/// What a report calls itself. Of a refused one these are a client's own words: any text, cut to a name's length.
public struct ReportName: Sendable, Equatable {
  private static let charactersMax = 128

  /// nil: it could not be read.
  public var namespace: String?, type: String?
  /// nil: the client gave none.
  public var reportID: String?

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
