import PrismHTTP
import PrismProtocol
import PrismStore

/// What `GET /reports` asks for: `namespace`, `type`, `device`, `kind`, `since` and `until` (milliseconds since 1970, when
/// it was received), `after` (the id of the last one seen), `limit` (100; at most 1000).
struct ReportFilter: Sendable {
  let sql: String
  let values: [String]

  /// - Throws: 400 naming the parameter.
  init(_ request: HTTPRequest) throws(CollectorRefusal) {
    var conditions = ["id > ?1"]
    var values = [String(try Self.number("after", request) ?? 0)]
    for (name, column) in [("namespace", "namespace"), ("type", "type"), ("device", "device"), ("kind", "kind")] {
      guard let value = request.parameter(name) else { continue }
      values.append(value)
      conditions.append("\(column) = ?\(values.count)")
    }
    for (name, comparison) in [("since", ">="), ("until", "<")] {
      guard let value = try Self.number(name, request) else { continue }
      values.append(String(value))
      conditions.append("received_time \(comparison) CAST(?\(values.count) AS INTEGER)")
    }
    let limit = try Self.number("limit", request) ?? 100
    guard (1...1000).contains(limit) else { throw CollectorRefusal(400, "limit: is \(limit), must be 1...1000") }
    conditions[0] = "id > CAST(?1 AS INTEGER)"
    sql = """
      SELECT id, device, namespace, kind, type, report_id, created_time, received_time, packet, chain_broken, meta,
      length(payload) FROM reports WHERE \(conditions.joined(separator: " AND ")) ORDER BY id LIMIT \(limit)
      """
    self.values = values
  }

  private static func number(_ name: String, _ request: HTTPRequest) throws(CollectorRefusal) -> Int? {
    guard let text = request.parameter(name) else { return nil }
    guard let value = Int(text), value >= 0 else { throw CollectorRefusal(400, "\(name): must be a whole number") }
    return value
  }

  /// The row of `sql` that `statement` stands on.
  static func report(_ statement: SQLiteStatement) -> JSONValue {
    let meta = try? JSONValue(parsing: statement.bytes(10), allowsDuplicateKeys: true)  // it was one when it came
    return [
      "id": .int(statement.int(0)), "device": .string(statement.text(1)), "namespace": .string(statement.text(2)),
      "kind": .string(statement.text(3)), "type": .string(statement.text(4)),
      "reportId": .string(statement.text(5)), "createdTime": statement.isNull(6) ? .null : .int(statement.int(6)),
      "receivedTime": .int(statement.int(7)), "packetId": .string(statement.text(8)),
      "chainBroken": .bool(statement.int(9) != 0), "meta": meta ?? .null,
      "payloadBytes": statement.isNull(11) ? .null : .int(statement.int(11)),
    ]
  }
}
