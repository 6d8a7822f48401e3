import PrismProtocol

/// A signal of OTLP: where its requests go, and what they are called in JSON (opentelemetry.io, "OTLP Specification").
enum OTLPSignal: String, CaseIterable {
  case logs, traces, metrics

  /// Behind the address of the backend.
  var path: String { "/v1/" + rawValue }

  /// The type of reports that came as this signal (docs/otlp.md).
  var type: String {
    switch self {
    case .logs: "otel.log"
    case .traces: "otel.span"
    case .metrics: "otel.metric"
    }
  }

  /// The lists of a request, from the outer one to the inner one.
  var lists: (resources: String, scopes: String, records: String) {
    switch self {
    case .logs: ("resourceLogs", "scopeLogs", "logRecords")
    case .traces: ("resourceSpans", "scopeSpans", "spans")
    case .metrics: ("resourceMetrics", "scopeMetrics", "metrics")
    }
  }

  var message: OTLPMessage {
    switch self {
    case .logs: .logRecord
    case .traces: .span
    case .metrics: .metric
    }
  }

  /// In `partialSuccess` of an answer: how much of a request was refused.
  var refused: String {
    switch self {
    case .logs: "rejectedLogRecords"
    case .traces: "rejectedSpans"
    case .metrics: "rejectedDataPoints"
    }
  }

  /// The members of a record. A meta has further ones, which prism added.
  var members: Set<String> {
    switch self {
    case .logs:
      [
        "timeUnixNano", "observedTimeUnixNano", "severityNumber", "severityText", "body", "attributes",
        "droppedAttributesCount", "flags", "traceId", "spanId", "eventName",
      ]
    case .traces:
      [
        "traceId", "spanId", "traceState", "parentSpanId", "flags", "name", "kind", "startTimeUnixNano",
        "endTimeUnixNano", "attributes", "droppedAttributesCount", "events", "droppedEventsCount", "links",
        "droppedLinksCount", "status",
      ]
    case .metrics:
      [
        "name", "description", "unit", "metadata", "gauge", "sum", "histogram", "exponentialHistogram", "summary",
      ]
    }
  }
}
