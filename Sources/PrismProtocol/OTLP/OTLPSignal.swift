/// The three kinds of OTLP requests: where they go, and what they are called in JSON (opentelemetry.io, "OTLP Specification").
package enum OTLPSignal: String, Sendable, CaseIterable {
  case logs, traces, metrics

  /// That its requests are sent to with POST.
  package var path: String { "/v1/\(rawValue)" }

  package init?(path: String) {
    guard let signal = Self.allCases.first(where: { $0.path == path }) else { return nil }
    self = signal
  }

  /// The type of its reports (docs/otlp.md).
  package var type: String {
    switch self {
    case .logs: "otel.log"
    case .traces: "otel.span"
    case .metrics: "otel.metric"
    }
  }

  package var recordMessage: OTLPMessage {
    switch self {
    case .logs: .logRecord
    case .traces: .span
    case .metrics: .metric
    }
  }

  /// The lists of a request, from the outer one to the inner one. Each of the outer two has the next one.
  package var lists: (resources: OTLPField, scopes: OTLPField, records: OTLPField) {
    let (outer, middle, inner): (StaticString, StaticString, StaticString) =
      switch self {
      case .logs: ("resourceLogs", "scopeLogs", "logRecords")
      case .traces: ("resourceSpans", "scopeSpans", "spans")
      case .metrics: ("resourceMetrics", "scopeMetrics", "metrics")
      }
    return (
      .list(1, outer, .message(.resource)), .list(2, middle, .message(.scope)), .list(2, inner, .message(recordMessage))
    )
  }

  /// JSON's names of these.
  package var names: (resources: String, scopes: String, records: String) {
    let lists = lists
    return (lists.resources.name.description, lists.scopes.name.description, lists.records.name.description)
  }

  /// The count in `partial_success`.
  package var rejectedName: String {
    switch self {
    case .logs: "rejectedLogRecords"
    case .traces: "rejectedSpans"
    case .metrics: "rejectedDataPoints"
    }
  }
}

extension String {
  /// A field's name as protobuf has it: `timeUnixNano` becomes `time_unix_nano`.
  package var snakeCased: String { reduce(into: "") { $0 += $1.isUppercase ? "_" + $1.lowercased() : String($1) } }
}
