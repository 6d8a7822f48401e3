/// A family of metrics: its row of the tables in docs/metrics.md, and the samples that a source gives it.
public struct Metric<Source>: Sendable {
  /// The type of a metric in Prometheus' format.
  public enum Kind: String, Sendable { case counter, gauge, histogram }
  /// Label names with their values, in order.
  public typealias Labels = [(name: String, value: String)]

  let name: String, kind: Kind, help: String
  let samples: @Sendable (Source) -> [(labels: Labels, value: any MetricValue)]

  /// - Parameter samples: each with the labels that it has besides its source's.
  public init(
    _ name: String, _ kind: Kind, _ help: String,
    samples: @escaping @Sendable (Source) -> [(labels: Labels, value: any MetricValue)]
  ) {
    (self.name, self.kind, self.help, self.samples) = (name, kind, help, samples)
  }

  /// One sample.
  public init<Value: MetricValue>(
    _ name: String, _ kind: Kind, _ help: String, _ value: @escaping @Sendable (Source) -> Value
  ) {
    self.init(name, kind, help) { [([], value($0))] }
  }

  /// A sample for each of the label's values, in this order.
  public init<Case: Sendable, Value: MetricValue>(
    _ name: String, _ kind: Kind, _ help: String, by label: String, _ cases: [(name: String, value: Case)],
    _ value: @escaping @Sendable (Source, Case) -> Value
  ) {
    self.init(name, kind, help) { source in cases.map { ([(label, $0.name)], value(source, $0.value)) } }
  }

  /// A sample for each of these cases.
  public init<Case: Sendable & RawRepresentable<String>, Value: MetricValue>(
    _ name: String, _ kind: Kind, _ help: String, by label: String, _ cases: [Case],
    _ value: @escaping @Sendable (Source, Case) -> Value
  ) {
    self.init(name, kind, help, by: label, cases.map { ($0.rawValue, $0) }, value)
  }

  /// Counts by a label with fixed values: each is there from the beginning, so that a rate never misses its first step.
  public init<Case: Sendable & Hashable & CaseIterable & RawRepresentable<String>>(
    _ name: String, _ kind: Kind, _ help: String, by label: String,
    _ counts: @escaping @Sendable (Source) -> [Case: Int]
  ) {
    self.init(name, kind, help, by: label, Array(Case.allCases)) { counts($0)[$1] ?? 0 }
  }

  /// Counts by a label. - Parameter known: values that are there before their first event.
  public init(
    _ name: String, _ kind: Kind, _ help: String, by label: String, known: [String],
    _ counts: @escaping @Sendable (Source) -> [String: Int]
  ) {
    self.init(name, kind, help) { source in
      let counts = counts(source)
      return Set(known).union(counts.keys).sorted().map { ([(label, $0)], counts[$0] ?? 0) }
    }
  }

  /// 1 for the case that holds, 0 for the others.
  public init<Case: Sendable & Equatable & CaseIterable & RawRepresentable<String>>(
    _ name: String, _ help: String, is label: String, _ present: @escaping @Sendable (Source) -> Case
  ) {
    self.init(name, .gauge, help, by: label, Array(Case.allCases)) { present($0) == $1 }
  }
}

/// The value of a sample.
public protocol MetricValue: Sendable {
  /// Its lines in Prometheus' format: what follows the metric's name, a further label, and the number.
  var lines: [(suffix: String, label: (name: String, value: String)?, number: String)] { get }
}

extension Int: MetricValue {
  public var lines: [(suffix: String, label: (name: String, value: String)?, number: String)] { [("", nil, "\(self)")] }
}

extension Double: MetricValue {
  public var lines: [(suffix: String, label: (name: String, value: String)?, number: String)] { [("", nil, "\(self)")] }
}

extension Bool: MetricValue {
  /// 1 or 0.
  public var lines: [(suffix: String, label: (name: String, value: String)?, number: String)] { (self ? 1 : 0).lines }
}

extension Optional: MetricValue where Wrapped: MetricValue {
  /// nil: there is no sample.
  public var lines: [(suffix: String, label: (name: String, value: String)?, number: String)] { self?.lines ?? [] }
}

extension Histogram: MetricValue {
  public var lines: [(suffix: String, label: (name: String, value: String)?, number: String)] {
    var below = 0
    return counts.enumerated().map { index, count in
      below += count
      return ("_bucket", ("le", index < edges.count ? "\(edges[index])" : "+Inf"), "\(below)")
    } + [("_sum", nil, "\(sum)"), ("_count", nil, "\(below)")]
  }
}

/// A page in Prometheus' text exposition format (version 0.0.4), written family by family.
public struct MetricsText: Sendable {
  /// The value of `Content-Type`.
  public static let contentType = "text/plain; version=0.0.4; charset=utf-8"

  /// The page so far.
  public private(set) var text = ""

  public init() {}

  /// Writes the families of one source.
  public mutating func add<Source>(_ metrics: [Metric<Source>], of source: Source) {
    let labels: KeyValuePairs<String, String> = [:]
    add(metrics, of: [(labels, source)])
  }

  /// Writes families of several sources, each with its labels. A family without samples is allowed.
  public mutating func add<Source>(
    _ metrics: [Metric<Source>], of sources: [(labels: KeyValuePairs<String, String>, source: Source)]
  ) {
    for metric in metrics {
      text += "# HELP \(metric.name) \(Self.escaped(metric.help, quotes: false))\n"
      text += "# TYPE \(metric.name) \(metric.kind.rawValue)\n"
      for (labels, source) in sources {
        let given = labels.map { (name: $0.key, value: $0.value) }
        for (own, value) in metric.samples(source) {
          for line in value.lines {
            write(metric.name + line.suffix, given + own + (line.label.map { [$0] } ?? []), line.number)
          }
        }
      }
    }
  }

  private mutating func write(_ name: String, _ labels: [(name: String, value: String)], _ number: String) {
    text += name
    if !labels.isEmpty {
      let words = labels.map { "\($0.name)=\"\(Self.escaped($0.value, quotes: true))\"" }
      text += "{" + words.joined(separator: ",") + "}"
    }
    text += " \(number)\n"
  }

  private static func escaped(_ text: String, quotes: Bool) -> String {
    text.unicodeScalars.reduce(into: "") { result, scalar in
      switch scalar {
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\"" where quotes: result += "\\\""
      default: result.unicodeScalars.append(scalar)
      }
    }
  }
}
