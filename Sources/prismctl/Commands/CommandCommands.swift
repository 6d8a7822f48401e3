import PrismBase
import PrismClient
import PrismProtocol

// The server's commands, over the ingest socket (docs/records.md, "Commands").
extension Command {
  static let commandList = Command(
    words: ["command", "list"], summary: "list the server's commands and what came of them",
    options: [
      Option("--namespace", "N", "the namespace of the commands (prism)"),
      Option("--json", nil, "one record of the table prism.command a line"),
    ],
    sockets: [.ingest], example: "prismctl command list --namespace shop"
  ) { invocation async throws(Failure) in
    let records = try await RecordArguments.asking(invocation, of: .command) {
      (client, table, namespace) async throws(ClientError) in try await client.records(in: table, of: namespace)
    }
    if invocation.has("--json") {
      for record in records { print(record.text.printable) }
    } else {
      print(CommandTable(records, columns: Screen.size?.columns).text)
      if records.isEmpty, invocation["--namespace"] == nil {
        Terminal.note("these are those of the namespace prism; --namespace NAME lists another's")
      }
    }
  }
}

/// `prismctl command list` for people: a command in a line, and its result below.
struct CommandTable {
  let text: String

  /// - Parameter records: of the table `prism.command`. - Parameter columns: of the terminal; nil without a terminal.
  init(_ records: [JSONValue], columns: Int?) {
    guard !records.isEmpty else {
      text = "no commands"
      return
    }
    let head = Self.line("ID", "COMMAND", "STATE", "SINCE")
    text = ([head] + records.flatMap { Self.lines($0, columns) }).joined(separator: "\n")
  }

  private static func lines(_ record: JSONValue, _ columns: Int?) -> [String] {
    let report = CommandReport(record: record)
    let answer = report.answer
    let first = line(
      report.id, report.name ?? "-", answer?.state.rawValue ?? "new",
      answer.map { RFC3339.text(unixMilliseconds: $0.stateTime).prefix(19) + "Z" } ?? "-")
    guard let result = answer?.result else { return [first] }
    let text = (result.string ?? result.text).printableLines
    return [first] + text.split(separator: "\n").flatMap { "  \($0)".wrapped(columns) }
  }

  private static func line(_ id: String, _ name: String, _ state: String, _ since: String) -> String {
    "\(id.printable.padded(36))  \(name.printable.padded(8)) \(state.padded(9)) \(since)"
  }
}
