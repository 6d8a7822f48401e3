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
    }
  }
}
