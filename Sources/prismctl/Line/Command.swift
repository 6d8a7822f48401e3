import PrismBase

/// One command: its words, what it takes, and what it does.
struct Command: Sendable {
  typealias Option = ArgumentOption

  /// Which of the daemon's sockets a command opens, and so which options it has for them.
  enum Socket: Sendable { case control, ingest }

  /// `dead list` has two.
  let words: [String]
  let summary: String
  /// Names of the operands. One in brackets may be left out, one that ends with `...]` may be repeated.
  var operands: [String] = []
  var options: [Option] = []
  var sockets: [Socket] = [.control]
  /// It may be repeated with `--watch`.
  var isWatchable = false
  let example: String
  let run: @MainActor @Sendable (Invocation) async throws(Failure) -> Void

  var name: String { words.joined(separator: " ") }

  var usage: String {
    let operands = operands.map { " \($0)" }.joined()
    return "prismctl \(name)\(options.isEmpty ? "" : " [OPTIONS]")\(operands)"
  }

  /// Its own, and those that it has in common with others.
  var allOptions: [Option] {
    var all = options
    if options.contains(where: { $0.name == "--json" }) { all.append(Invocation.output) }
    if isWatchable { all.append(Invocation.watch) }
    return all + sockets.map { $0 == .control ? Invocation.control : Invocation.ingest } + [Invocation.help]
  }

  var help: String {
    var lines = [summary, "", "usage: \(usage)"]
    lines += ["", Option.help(allOptions, column: 29)]
    return (lines + ["", "example: \(example)"]).joined(separator: "\n")
  }
}
