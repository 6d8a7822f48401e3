import Glibc
import PrismBase
import PrismCollector

extension CollectorCommand {
  /// `prism-collector query …`: prints stored reports.
  static let query = CollectorCommand(name: "query", options: QueryOptions.all, usage: QueryOptions.usage) {
    line throws(Fault) in
    if let word = line.operands.first { throw line.misused("\(ArgumentFault.unexpectedWord(word))") }
    var (query, output) = (ReportQuery(), LineOutput())
    for option in line.arguments.given where QueryOptions.all.contains(where: { $0.name == option.name }) {
      try query.take(String(option.name.dropFirst(2)), option.value ?? "")
    }
    StandardStreams.say(try await ProgressLine.answer(query, try line.options) { output.write($0) })
    return output.exitCode
  }
}

/// How far a question is, in a line of standard error; where that is no terminal, there is no line.
private enum ProgressLine {
  static func answer(
    _ query: ReportQuery, _ options: CollectorOptions, _ write: ([UInt8]) -> Bool
  ) async throws(ReportQuery.Fault) -> String {
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

  static let usage = """
    usage: prism-collector query [OPTIONS] [--config PATH | the flags of prism-collector]

    \(ArgumentOption.help(all, column: 23))

    Exit codes: 0, 64 usage, 69 the store can't be read, 74 the output can't be written, 78 configuration.
    """
}
