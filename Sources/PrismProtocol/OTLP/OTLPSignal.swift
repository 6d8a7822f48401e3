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

  /// JSON's names of the levels of a request.
  package var names: (resources: String, scopes: String, records: String) {
    switch self {
    case .logs: ("resourceLogs", "scopeLogs", "logRecords")
    case .traces: ("resourceSpans", "scopeSpans", "spans")
    case .metrics: ("resourceMetrics", "scopeMetrics", "metrics")
    }
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
