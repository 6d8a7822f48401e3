/// A page in Prometheus' text exposition format (version 0.0.4), written family by family.
public struct MetricsText: Sendable {
  /// The type of a metric in Prometheus' format.
  public enum Kind: String, Sendable { case counter, gauge, histogram }
  /// Label names with their values, in order.
  public typealias Labels = KeyValuePairs<String, String>

  /// The value of `Content-Type`.
  public static let contentType = "text/plain; version=0.0.4; charset=utf-8"

  /// The page so far.
  public private(set) var text = ""
  private var family = ""

  public init() {}

  /// Begins a family; the samples that follow are its. A family without samples is allowed.
  public mutating func begin(_ name: String, _ kind: Kind, _ help: String) {
    family = name
    text += "# HELP \(name) \(Self.escaped(help, quotes: false))\n# TYPE \(name) \(kind.rawValue)\n"
  }

  /// Appends a sample of the metric that was begun last.
  public mutating func sample(_ value: Int, _ labels: Labels = [:]) { line("", labels.map { $0 }, String(value)) }
  /// Appends a sample of the metric that was begun last.
  public mutating func sample(_ value: Double, _ labels: Labels = [:]) { line("", labels.map { $0 }, "\(value)") }

  /// - Parameter counts: of each bucket, not cumulative; one more than there are `edges`, for what is above the last.
  public mutating func histogram(edges: [Double], counts: [Int], sum: Double, _ labels: Labels = [:]) {
    var below = 0
    for (index, count) in counts.enumerated() {
      below += count
      let edge = index < edges.count ? "\(edges[index])" : "+Inf"
      line("_bucket", labels.map { $0 } + [("le", edge)], String(below))
    }
    line("_sum", labels.map { $0 }, "\(sum)")
    line("_count", labels.map { $0 }, String(below))
  }

  private mutating func line(_ suffix: String, _ labels: [(key: String, value: String)], _ value: String) {
    text += family + suffix
    if !labels.isEmpty {
      text += "{" + labels.map { "\($0.key)=\"\(Self.escaped($0.value, quotes: true))\"" }.joined(separator: ",") + "}"
    }
    text += " \(value)\n"
  }

  private static func escaped(_ text: String, quotes: Bool) -> String {
    var result = ""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\"" where quotes: result += "\\\""
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result
  }
}
