import Glibc
import PrismBase
import PrismClient
import PrismProtocol

// Records of this device, over the ingest socket (docs/records.md).
extension Command {
  private static let place = [
    Option("--namespace", "N", "the table's namespace (prism)"),
    Option("--table", "T", "the table, as `records` names it"),
    Option("--json", nil, "the answer as JSON"),
  ]

  static let recordPut = Command(
    words: ["record", "put"], summary: "set all fields of a record", operands: ["ID", "FIELDS"], options: place,
    sockets: [.ingest], example: #"prismctl record put --namespace shop --table printer p1 '{"paper":"low"}'"#
  ) { invocation async throws(Failure) in
    try await RecordArguments.store(invocation) { (client, fields, id, table, namespace) async throws(ClientError) in
      try await client.put(fields, as: id, in: table, of: namespace)
    }
  }

  static let recordPatch = Command(
    words: ["record", "patch"], summary: "change fields of a record; null removes one", operands: ["ID", "FIELDS"],
    options: place, sockets: [.ingest],
    example: #"prismctl record patch --namespace shop --table printer p1 '{"paper":null}'"#
  ) { invocation async throws(Failure) in
    try await RecordArguments.store(invocation) { (client, fields, id, table, namespace) async throws(ClientError) in
      try await client.patch(fields, of: id, in: table, of: namespace)
    }
  }

  static let recordGet = Command(
    words: ["record", "get"], summary: "show a record, by its own or the server's id", operands: ["ID"], options: place,
    sockets: [.ingest], example: "prismctl record get --namespace shop --table printer p1"
  ) { invocation async throws(Failure) in
    let record = try await RecordArguments.asking(invocation) { (client, table, namespace) async throws(ClientError) in
      try await client.record(try RecordArguments.id(invocation), in: table, of: namespace)
    }
    guard let record else { throw Failure(Failure.no, "no record has this id") }
    print(invocation.has("--json") ? record.text : record.prettyText)
  }

  static let recordList = Command(
    words: ["record", "list"], summary: "list the records of a table, one a line", options: place, sockets: [.ingest],
    example: "prismctl record list --namespace shop --table printer"
  ) { invocation async throws(Failure) in
    let records = try await RecordArguments.asking(invocation) { (client, table, namespace) async throws(ClientError) in
      try await client.records(in: table, of: namespace)
    }
    for record in records { print(record.text.printable) }
  }

  static let recordDelete = Command(
    words: ["record", "delete"], summary: "delete a record, here and at the server", operands: ["ID"], options: place,
    sockets: [.ingest], example: "prismctl record delete --namespace shop --table printer p1"
  ) { invocation async throws(Failure) in
    try await RecordArguments.asking(invocation) { (client, table, namespace) async throws(ClientError) in
      try await client.delete(try RecordArguments.id(invocation), in: table, of: namespace)
    }
    if invocation.has("--json") { print((["status": "stored"] as JSONValue).text) }
  }

  static let recordWatch = Command(
    words: ["record", "watch"], summary: "follow the changes of a table, one a line, until Ctrl-C", options: place,
    sockets: [.ingest], example: "prismctl record watch --namespace shop --table printer"
  ) { invocation async throws(Failure) in
    signal(SIGPIPE, SIG_DFL)  // `prismctl record watch | head` ends with head
    let isJSON = invocation.has("--json")
    try await RecordArguments.asking(invocation) { (client, table, namespace) async throws(ClientError) in
      // A watch of an unknown table would wait until it is declared: the first question says so instead.
      _ = try await client.page(in: table, of: namespace, limit: 1)
      for await change in client.changes(of: table, in: namespace) {
        Terminal.write(STDOUT_FILENO, (isJSON ? change.json.text : RecordArguments.text(change)) + "\n")
      }
    }
  }
}
