import PrismBase
import PrismControl
import PrismProtocol

extension Command {
  static let remove = Command(
    words: ["remove"], summary: "remove stored reports of a namespace; they are counted as removed",
    options: [
      Option("--namespace", "N", "of this namespace"), Option("--all", nil, "all of them"),
      Option("--oldest", "COUNT", "the oldest"), Option("--latest", "COUNT", "the latest"),
      Option("--before-days", "D", "stored more than D days ago"),
      Option("--report-id", "REPORT_ID", "the one of this id"),
      .yes, json,
    ],
    example: "prismctl remove --namespace shop --before-days 7 --yes"
  ) { invocation throws(Failure) in
    guard let namespace = invocation["--namespace"] else { throw .usage("remove: --namespace is missing") }
    let what = try selection(invocation)
    try invocation.confirm("remove stored reports of \(namespace)?", else: "nothing was removed")
    let request = ControlRequest(.remove, [.init("namespace", .string(namespace)), what])
    try ControlConnection(invocation).ask(request) { answer throws(Failure) in
      guard let removed = answer[Answers.removed] else { return }
      print(invocation.has("--json") ? answer.json.text : "removed \(removed)")
      if removed == 0, let id = invocation["--report-id"] {
        throw Failure(Failure.no, "no report of the id \(id.printable) is stored in \(namespace.printable)")
      }
    }
  }

  private static func selection(_ invocation: Invocation) throws(Failure) -> JSONValue.Member {
    let named = [
      ("--oldest", "oldest"), ("--latest", "latest"), ("--before-days", "beforeDays"), ("--report-id", "reportId"),
    ].compactMap { option, key in invocation[option].map { (key, $0) } }
    guard named.count + (invocation.has("--all") ? 1 : 0) == 1 else {
      throw .usage("remove: exactly one of --all, --oldest, --latest, --before-days, --report-id")
    }
    guard let (key, text) = named.first else { return .init("all", true) }
    if key == "reportId" { return .init(key, .string(text)) }
    guard let count = Int(text), count >= 0 else { throw .usage("remove: `\(text)` is not a count") }
    return .init(key, .int(count))
  }
}
