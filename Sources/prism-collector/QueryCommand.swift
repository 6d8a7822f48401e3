import Glibc
import PrismBase
import PrismCollector

extension Command {
  /// `prism-collector query …`: prints stored reports.
  static let query = Command(
    "query", "print stored reports", options: QueryOptions.all,
    example: "prism-collector query --namespace shop --since 1d --format csv",
    work: .later { line throws(Failure) in
      var (query, output) = (ReportQuery(), LineOutput())
      for option in line.given where QueryOptions.all.contains(where: { $0.name == option.name }) {
        try query.take(String(option.name.dropFirst(2)), option.value ?? "")
      }
      StandardStreams.say(try await ProgressLine.answer(query, try line.options) { output.write($0) })
      return output.exitCode
    })
}

/// How far a question is, in a line of standard error; where that is no terminal, there is no line.
private enum ProgressLine {
  static func answer(
    _ query: ReportQuery, _ options: CollectorOptions, _ write: ([UInt8]) -> Bool
  ) async throws(Failure) -> String {
    func say(_ text: String) { if isatty(STDERR_FILENO) == 1 { StandardStreams.say("\r\u{1b}[K" + text) } }
    defer { say("") }
    let note = { (share: Double) in if share > 0 { say("\(Int(share * 100)) % of the reports are read") } }
    return try await query.run(options, note: note) {
      say("")
      return write($0)
    }
  }
}

private enum QueryOptions {
  static let all = [
    ArgumentOption("--namespace", "NAME", "reports of this namespace"),
    ArgumentOption("--type", "TYPE", "reports of this type"),
    ArgumentOption("--device", "ID", "reports of this device"),
    ArgumentOption("--kind", "KIND", "meta or payload"),
    ArgumentOption(
      "--since", "WHEN",
      """
      reports made at this time or later: 15m, 2h, 3d ago, 2026-01-31, 2026-01-31T12:00:00Z, or
      milliseconds since 1970
      """),
    ArgumentOption("--until", "WHEN", "reports made before this time, in the same forms"),
    ArgumentOption("--time", "TIME", "the time of these: created (the default), or received"),
    ArgumentOption(
      "--meta", "CONDITION", "a condition on a field of the meta, 'net.ms >= 100'; may be given several times",
      isRepeatable: true),
    ArgumentOption("--newest", nil, "the newest first"),
    ArgumentOption("--limit", "N", "the most reports (1000)"),
    ArgumentOption("--format", "FORMAT", "ndjson, a line of JSON each (the default), or csv"),
  ]
}
