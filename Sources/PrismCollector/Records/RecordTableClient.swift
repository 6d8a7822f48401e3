package import PrismBase
import PrismHTTP
package import PrismProtocol

/// Reads and changes records for the command line.
package final class RecordTableClient {
  private let client: CollectorClient
  private let table: String
  private let query: String

  package init(_ client: CollectorClient, namespace: NamespaceName, table: RecordTableName, device: String?) {
    (self.client, self.table) = (client, "/records/\(namespace)/\(table)")
    query = device.map { "device=\($0.percentEncoded)" } ?? ""
  }

  // MARK: One record

  /// - Returns: the record, as JSON.
  package func get(_ id: String) async throws(Failure) -> String {
    try await ask(.get, "/\(id.percentEncoded)", type: nil)
  }

  /// - Parameter fields: a JSON object. - Parameter isNew: a record that is there is left as it is, and refused.
  /// - Returns: the record as it is now.
  package func put(_ id: String, fields: String, isNew: Bool = false) async throws(Failure) -> String {
    try await ask(
      .put, "/\(id.percentEncoded)", type: "application/json", Array(fields.utf8),
      headers: isNew ? [("If-None-Match", "*")] : [])
  }

  /// Changes fields by a JSON Merge Patch. - Returns: the record.
  package func patch(_ id: String, fields: String) async throws(Failure) -> String {
    try await ask(.patch, "/\(id.percentEncoded)", type: "application/merge-patch+json", Array(fields.utf8))
  }

  package func delete(_ id: String) async throws(Failure) -> String {
    try await ask(.delete, "/\(id.percentEncoded)", type: nil)
  }

  // MARK: Many

  /// Makes the changes of lines, a thousand in a transaction. - Parameter firstLine: the number of the first one, for faults.
  /// - Returns: how many were stored and deleted.
  package func change(_ lines: [UInt8], firstLine: Int) async throws(Failure) -> (stored: Int, deleted: Int) {
    let text = try await ask(.post, "", type: "application/x-ndjson", lines, query: "firstLine=\(firstLine)")
    let answer = try? JSONValue(parsing: Array(text.utf8))
    return (answer?["stored"]?.int ?? 0, answer?["deleted"]?.int ?? 0)
  }

  /// Reads page after page. - Parameters:
  ///   - conditions: of the fields, as `KEY.KEY >= VALUE`.
  ///   - write: takes a record as JSON; false ends the reading.
  package func list(where conditions: [String] = [], _ write: (String) -> Bool) async throws(Failure) {
    let parts = [query] + conditions.map { "field=\($0.percentEncoded)" }
    try await client.pages(table, query: parts.filter { !$0.isEmpty }.joined(separator: "&"), of: "records") {
      write($0.text)
    }
  }

  private func ask(
    _ method: HTTPRequest.Method, _ path: String, type: String?, _ body: [UInt8] = [], query more: String = "",
    headers: [(name: String, value: String)] = []
  ) async throws(Failure) -> String {
    let query = [self.query, more].filter { !$0.isEmpty }.joined(separator: "&")
    return try await client.ask(method, table + path, query: query, type: type, body, headers: headers)
  }
}
