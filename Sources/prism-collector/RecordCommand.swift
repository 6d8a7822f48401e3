import Glibc
import PrismBase
import PrismCollector
import PrismProtocol

extension Command {
  /// `prism-collector record …`: reads and changes records.
  static let record = group(
    "record",
    [
      (
        "put", "[ID] [FIELDS]",
        """
        set all fields of a record, a JSON object; without ID many from standard input
        Changes from standard input are a line each, a thousand in a transaction: {"id":…,"fields":{…}},
        {"id":…,"patch":{…}} or {"id":…,"delete":true}. A fault names the line, and the `--from` to go on with; lines may
        also be sent again.
        """
      ),
      ("patch", "ID FIELDS", "change fields by a JSON Merge Patch (RFC 7396): null removes a field"),
      ("delete", "ID", "delete a record"),
      ("get", "ID", "print a record, by its own id or the server's"),
      ("list", "", "print every record of the table, of all devices or of one, a line each"),
    ], options: RecordRequest.options
  ) { line throws(Failure) in
    let isMany = line.verb == "put" && line.operands.isEmpty
    if line.verb == "put", line.operands.count == 1 { throw line.misused("record put needs ID and FIELDS") }
    guard let namespace = line["--namespace"], let table = line["--table"] else {
      throw line.misused("record \(line.verb) needs --namespace and --table")
    }
    let from = line["--from"]
    guard let firstLine = from.map({ Int($0) }) ?? 1, firstLine > 0, from == nil || isMany else {
      throw .usage("--from: is `\(from ?? "")`, must be the number of a line, with `put` of standard input")
    }
    guard let namespace = NamespaceName(namespace), let table = RecordTableName(table) else {
      throw .usage("--namespace and --table must be names of a namespace and of a table of records")
    }
    return try await line.ask { client throws(Failure) in
      let records = RecordTableClient(client, namespace: namespace, table: table, device: line["--device"])
      return try await RecordRequest(client: records).run(line, firstLine: firstLine)
    }
  }
}

/// One request of `prism-collector record`.
private struct RecordRequest {
  static let options = [
    ArgumentOption("--namespace", "NAME", "the namespace of the table"),
    ArgumentOption("--table", "NAME", "the table"),
    ArgumentOption(
      "--device", "ID", "the device whose records these are; without it they are the fleet's, or all with `list`"),
    ArgumentOption(
      "--field", "CONDITION", "with `list`: a condition on a field, 'net.mode = 4'; may be given several times",
      isRepeatable: true),
    ArgumentOption("--from", "LINE", "with `put` of standard input: leaves out the lines before this one"),
  ]

  let client: RecordTableClient

  /// - Parameter firstLine: of standard input.
  func run(_ line: Invocation, firstLine: Int) async throws(Failure) -> Int32 {
    let values = line.operands
    switch line.verb {
    case "put" where values.isEmpty: return try await changeMany(from: firstLine)
    case "put": print(try await client.put(values[0], fields: values[1]))
    case "patch": print(try await client.patch(values[0], fields: values[1]))
    case "delete": print(try await client.delete(values[0]))
    case "get": print(try await client.get(values[0]))
    default:
      var output = LineOutput()
      try await client.list(where: line.values("--field")) { output.add($0) }
      return output.exitCode
    }
    return 0
  }

  /// Lines of standard input in parts that a request takes, each a transaction.
  private func changeMany(from firstLine: Int) async throws(Failure) -> Int32 {
    var (input, counts) = (LineInput(from: firstLine), (stored: 0, deleted: 0))
    while let part = input.next() {
      do throws(Failure) {
        let made = try await client.change(part.text, firstLine: part.firstLine)
        counts = (counts.stored + made.stored, counts.deleted + made.deleted)
      } catch {
        throw Failure(error.exitCode, "\(error.message); go on with --from \(part.firstLine)")
      }
    }
    guard !input.hasFailed else {
      throw Failure(Failure.output, "standard input can't be read; go on with --from \(input.lineCount + 1)")
    }
    print(#"{"stored":\#(counts.stored),"deleted":\#(counts.deleted)}"#)
    return 0
  }
}
