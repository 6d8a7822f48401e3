/// One command: its words, what it takes, and what it does.
struct Command: Sendable {
  struct Option: Sendable {
    let name: String
    /// nil: a switch.
    let value: String?
    let help: String
    /// Only `--name=VALUE` gives the value; the option alone is a switch.
    var isValueOptional = false
    init(_ name: String, _ value: String? = nil, _ help: String) {
      (self.name, self.value, self.help) = (name, value, help)
    }

    /// `--watch[=SECONDS]`, `--type T`
    var usage: String {
      guard let value else { return name }
      return isValueOptional ? "\(name)[=\(value)]" : "\(name) \(value)"
    }
  }

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
    lines += [""] + allOptions.map { "  \(($0 == Invocation.help ? "-h, --help" : $0.usage).padded(26)) \($0.help)" }
    return (lines + ["", "example: \(example)"]).joined(separator: "\n")
  }
}

extension Command.Option: Equatable {}
