import PrismBase
import PrismClient
import PrismProtocol

/// The arguments that the commands on records have in common, and their answers.
enum RecordArguments {
  static func text(_ change: RecordChange) -> String {
    "generation \(change.generation)" + (change.ids.map { ": " + $0.map(\.text).joined(separator: ", ") } ?? "")
  }

  /// The socket's own check names a wrong id.
  static func id(_ invocation: Invocation) throws(ClientError) -> RecordID {
    guard let id = RecordID(invocation.operands[0]) else {
      throw .refused(
        socket: invocation.ingestSocket ?? PrismClient.defaultSocket,
        Refusal(.badRequest, "ID must be 1 to \(RecordID.bytesMax) visible ASCII characters"))
    }
    return id
  }

  /// Asks for a change of the record's fields, and prints its version.
  static func store(
    _ invocation: Invocation,
    _ body:
      @Sendable (PrismClient, JSONValue, RecordID, RecordTableName, NamespaceName) async throws(ClientError) -> Int
  ) async throws(Failure) {
    let fields: JSONValue
    do { fields = try JSONValue(parsing: invocation.operands[1]) } catch { throw .usage("FIELDS: \(error)") }
    guard fields.object != nil else { throw .usage("FIELDS: must be a JSON object, as '{\"paper\":\"low\"}'") }
    let version = try await asking(invocation) { (client, table, namespace) async throws(ClientError) in
      try await body(client, fields, try id(invocation), table, namespace)
    }
    print(
      invocation.has("--json")
        ? (["status": "stored", "version": .int(version)] as JSONValue).text : "version \(version)")
  }

  /// - Parameter table: nil: the one that `--table` names.
  static func asking<Result: Sendable>(
    _ invocation: Invocation, of table: RecordTableName? = nil,
    _ body: @Sendable (PrismClient, RecordTableName, NamespaceName) async throws(ClientError) -> Result
  ) async throws(Failure) -> Result {
    guard let table = table ?? invocation["--table"].flatMap({ RecordTableName($0) }) else {
      throw .usage("--table: give a table's name: 1 to 64 of A-Z a-z 0-9 _ -, the first a letter or digit")
    }
    let namespace = try invocation.namespace
    do throws(ClientError) { return try await body(invocation.client, table, namespace) } catch {
      guard case .refused(_, let refusal) = error else { throw Failure(Failure.unavailable, error.description) }
      throw Failure(Failure.no, "refused, \(refusal.code.rawValue): \(refusal.message)")
    }
  }
}
