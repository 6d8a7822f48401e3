import PrismBase
import PrismProtocol

extension Command {
  static let status = Command(
    words: ["status"], summary: "show what is stored, sent and held, and why",
    options: [
      Option("--all", nil, "quiet namespaces too, and where every row of each went"),
      Option("--json", nil, "one JSON document with stable keys"),
    ],
    isWatchable: true,
    example: "prismctl status --all"
  ) { invocation throws(Failure) in
    try ControlConnection(invocation).ask(ControlRequest(.status)) { answer in
      guard let status = answer[Answers.status] else { return }
      let document = answer[Answers.statusDocument] ?? .null
      print(
        invocation.has("--json")
          ? document.prettyText
          : StatusTable(status, columns: Screen.size?.columns, isWhole: invocation.has("--all")).text)
    }
  }
}
