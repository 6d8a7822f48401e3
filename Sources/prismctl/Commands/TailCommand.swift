import Glibc
import PrismBase
import PrismControl
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
      let line =
        invocation.has("--json")
        ? answer.json.text : TailLine(answer, .ofOutput, columns: Screen.size?.columns).text
      if let line { Terminal.write(STDOUT_FILENO, line + "\n") }
    }
  }
}

/// One report in a line: when in UTC, what became of it, whose it is, its bytes (`+` before its payload's), its id.
struct TailLine {
  /// nil for what is not for people.
  let text: String?

  /// - Parameter columns: of the terminal; nil without a terminal, so that nothing is cut.
  init(_ answer: AnswerLine, _ paint: Paint, columns: Int? = nil) {
    if let report = answer[Answers.report] {
      text = Self.line(report, paint, columns)
    } else {
      text = answer[Answers.skipped].map { paint("… \($0) skipped: this reader was too slow for them", .yellow) }
    }
  }

  /// Of the parts that every line has, and an id that the daemon made.
  private static let fullWidth = 13 + 17 + 22 + 11 + 37 + 4, narrowWidth = 9 + 17 + 37 + 3

  private static func line(_ report: TailReport, _ paint: Paint, _ columns: Int?) -> String {
    let isNarrow = columns.map { $0 < fullWidth } ?? false
    let time = report.time.dropFirst(11).prefix(isNarrow ? 8 : 12) + "Z"
    if let foreign = report.foreign {
      let what = paint("foreign".padded(17), .red)
      return "\(time) \(what) \(foreign) from \(report.peer ?? "an unknown client")"
    }
    let what = report.isRefused ? report.code ?? report.outcome : report.outcome
    let name = "\(report.namespace ?? "?")/\(report.type ?? "?")"
    let meta = report.metaBytes.map(StatusTable.bytes) ?? "-"
    let payload = report.payloadBytes.map { "+" + StatusTable.bytes($0) } ?? ""
    let colour: Paint.Colour? = report.isRefused ? .red : report.outcome == "duplicate" ? .yellow : nil
    let (outcomeCell, id) = (paint(what.padded(17), colour), report.reportId ?? "")
    let bytes = meta.paddedLeft(5) + payload.padded(6)
    let cells: [String]
    switch columns {
    case nil: cells = [String(time), outcomeCell, name.padded(22), bytes, id]
    case let columns? where isNarrow:
      cells = [String(time), outcomeCell, name.fitted(max(8, columns - narrowWidth)), id]
    case let columns?: cells = [String(time), outcomeCell, name.fitted(22 + columns - fullWidth), bytes, id]
    }
    return cells.joined(separator: " ")
  }
}
