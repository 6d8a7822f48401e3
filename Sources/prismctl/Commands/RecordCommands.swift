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
    let fields = try fields(invocation)
    let version = try await asking(invocation) { (client, table, namespace) async throws(ClientError) in
      try await client.put(fields, as: try id(invocation), in: table, of: namespace)
    }
    printStored(version, invocation)
  }

  static let recordPatch = Command(
    words: ["record", "patch"], summary: "change fields of a record; null removes one", operands: ["ID", "FIELDS"],
    options: place, sockets: [.ingest],
    example: #"prismctl record patch --namespace shop --table printer p1 '{"paper":null}'"#
  ) { invocation async throws(Failure) in
    let fields = try fields(invocation)
    let version = try await asking(invocation) { (client, table, namespace) async throws(ClientError) in
      try await client.patch(fields, of: try id(invocation), in: table, of: namespace)
    }
    printStored(version, invocation)
  }

  static let recordGet = Command(
    words: ["record", "get"], summary: "show a record, by its own or the server's id", operands: ["ID"], options: place,
    sockets: [.ingest], example: "prismctl record get --namespace shop --table printer p1"
  ) { invocation async throws(Failure) in
    let record = try await asking(invocation) { (client, table, namespace) async throws(ClientError) in
      try await client.record(try id(invocation), in: table, of: namespace)
    }
    guard let record else { throw Failure(Failure.no, "no record has this id") }
    print(invocation.has("--json") ? record.text : record.prettyText)
  }

  static let recordList = Command(
    words: ["record", "list"], summary: "list the records of a table, one a line", options: place, sockets: [.ingest],
    example: "prismctl record list --namespace shop --table printer"
  ) { invocation async throws(Failure) in
    let records = try await asking(invocation) { (client, table, namespace) async throws(ClientError) in
      try await client.records(in: table, of: namespace)
    }
    for record in records { print(record.text.printable) }
  }

  static let recordDelete = Command(
    words: ["record", "delete"], summary: "delete a record, here and at the server", operands: ["ID"], options: place,
    sockets: [.ingest], example: "prismctl record delete --namespace shop --table printer p1"
  ) { invocation async throws(Failure) in
    try await asking(invocation) { (client, table, namespace) async throws(ClientError) in
      try await client.delete(try id(invocation), in: table, of: namespace)
    }
    if invocation.has("--json") { print((["status": "stored"] as JSONValue).text) }
  }

  // MARK: Arguments

  private static func printStored(_ version: Int, _ invocation: Invocation) {
    print(
      invocation.has("--json")
        ? (["status": "stored", "version": .int(version)] as JSONValue).text : "version \(version)")
  }

  /// The socket's own check names a wrong id.
  private static func id(_ invocation: Invocation) throws(ClientError) -> RecordID {
    guard let id = RecordID(invocation.operands[0]) else {
      throw .refused(
        socket: invocation.ingestSocket ?? PrismClient.defaultSocket,
        Refusal(.badRequest, "ID must be 1 to \(RecordID.bytesMax) visible ASCII characters"))
    }
    return id
  }

  private static func fields(_ invocation: Invocation) throws(Failure) -> JSONValue {
    let fields: JSONValue
    do { fields = try JSONValue(parsing: invocation.operands[1]) } catch { throw .usage("FIELDS: \(error)") }
    guard fields.object != nil else { throw .usage("FIELDS: must be a JSON object, as '{\"paper\":\"low\"}'") }
    return fields
  }

  private static func asking<Result: Sendable>(
    _ invocation: Invocation,
    _ body: @Sendable (PrismClient, RecordTableName, NamespaceName) async throws(ClientError) -> Result
  ) async throws(Failure) -> Result {
    guard let table = invocation["--table"].flatMap({ RecordTableName($0) }) else {
      throw .usage("--table: give a table's name: 1 to 64 of A-Z a-z 0-9 _ -, the first a letter or digit")
    }
    guard let namespace = NamespaceName(invocation["--namespace"] ?? "prism") else {
      throw .usage("--namespace: a name is 1 to 64 of A-Z a-z 0-9 _ -, the first a letter or digit")
    }
    let client = PrismClient(socket: invocation.ingestSocket, app: ["APP_NAME": "prismctl"])
    do throws(ClientError) { return try await body(client, table, namespace) } catch {
      guard case .refused(_, let refusal) = error else { throw Failure(Failure.unavailable, error.description) }
      throw Failure(Failure.no, "refused, \(refusal.code.rawValue): \(refusal.message)")
    }
  }
}
