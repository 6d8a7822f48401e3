/// One command: its words, what it takes, and what it does.
struct Command: Sendable {
  struct Option: Sendable {
    let name: String
    /// nil: a switch.
    let value: String?
    let help: String
    init(_ name: String, _ value: String? = nil, _ help: String) {
      (self.name, self.value, self.help) = (name, value, help)
    }
  }

  /// `dead list` has two.
  let words: [String]
  let summary: String
  /// Names of what stands beside the options; one in brackets may be left out, one that ends with `...]` be repeated.
  var operands: [String] = []
  var options: [Option] = []
  let example: String
  let run: @MainActor @Sendable (Invocation) async throws(Failure) -> Void

  var name: String { words.joined(separator: " ") }

  var usage: String {
    let operands = operands.map { " \($0)" }.joined()
    return "prismctl \(name)\(options.isEmpty ? "" : " [OPTIONS]")\(operands)"
  }

  var help: String {
    var lines = [summary, "", "usage: \(usage)"]
    let all = options + Invocation.commonOptions
    lines += [""] + all.map { "  \(($0.name + ($0.value.map { " \($0)" } ?? "")).padded(26)) \($0.help)" }
    return (lines + ["", "example: \(example)"]).joined(separator: "\n")
  }
}
