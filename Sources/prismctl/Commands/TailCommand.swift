import Glibc
import PrismProtocol

extension Command {
  static let tail = Command(
    words: ["tail"], summary: "follow reports as they are admitted or refused; shows nothing of their content",
    options: [
      Option("--namespace", "N", "of this namespace only"), Option("--type", "T", "of this type only"),
      Option("--refused", nil, "only what is refused"),
      Option("--json", nil, "the daemon's answers as they come, one JSON object a line"),
    ],
    example: "prismctl tail --namespace shop --refused"
  ) { invocation throws(Failure) in
    signal(SIGPIPE, SIG_DFL)  // `prismctl tail | head` ends with head
    var arguments: [JSONValue.Member] = invocation.has("--refused") ? [.init("refused", true)] : []
    for (option, key) in [("--namespace", "namespace"), ("--type", "type")] {
      if let value = invocation[option] { arguments.append(.init(key, .string(value))) }
    }
    try ControlConnection(invocation).ask(ControlRequest(.tail, arguments)) { answer in
      let line = invocation.has("--json") ? answer.text : TailLine(answer, .ofOutput).text
      if let line { Terminal.write(STDOUT_FILENO, line + "\n") }
    }
  }
}

/// One report in a line: when, what became of it, whose it is, its bytes (`+` before its payload's), its id.
struct TailLine {
  /// nil for what is not for people.
  let text: String?

  init(_ answer: JSONValue, _ paint: Paint) {
    if let report = answer["report"] {
      text = Self.line(report, paint)
    } else {
      text = answer["skipped"]?.int.map { paint("… \($0) skipped: this reader was too slow for them", .yellow) }
    }
  }

  private static func line(_ report: JSONValue, _ paint: Paint) -> String {
    let time = (report["time"]?.string ?? "").dropFirst(11).dropLast()
    let outcome = report["outcome"]?.string ?? "?"
    let what = outcome == "refused" ? report["code"]?.string ?? outcome : outcome
    let name = "\((report["namespace"]?.string ?? "?").printable)/\((report["type"]?.string ?? "?").printable)"
    let meta = report["metaBytes"]?.int.map(StatusTable.bytes) ?? "-"
    let payload = report["payloadBytes"]?.int.map { "+" + StatusTable.bytes($0) } ?? ""
    let colour: Paint.Colour? = outcome == "refused" ? .red : outcome == "duplicate" ? .yellow : nil
    return [
      String(time).padded(12), paint(what.padded(17), colour), name.padded(22), meta.paddedLeft(5) + payload.padded(6),
      (report["reportId"]?.string ?? "").printable,
    ].joined(separator: " ")
  }
}
