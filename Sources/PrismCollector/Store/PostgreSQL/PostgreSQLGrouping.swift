import PrismProtocol

/// A question of the page in PostgreSQL's SQL.
struct PostgreSQLGrouping {
  private let filter: ReportFilter
  private let grouping: ReportGrouping
  private let conditions: [String]
  private var word = "''"
  private var lateral = ""
  /// Of `$1` and on.
  private(set) var values: [String?]

  init(_ filter: ReportFilter, _ grouping: ReportGrouping) {
    (self.filter, self.grouping) = (filter, grouping)
    let conditions = PostgreSQLConditions(filter)
    let ids = filter.ids ?? 0...0
    self.conditions = ["r.id >= \(ids.lowerBound)", "r.id <= \(ids.upperBound)"] + conditions.sql
    values = conditions.values
    switch grouping.key {
    case .nothing: break
    case .type: word = "r.type"
    case .namespace: word = "s.namespace"
    case .device: word = "s.device"
    case .kind: word = "CASE s.kind WHEN 'm' THEN 'meta' WHEN 'p' THEN 'payload' ELSE s.kind::text END"
    case .meta(let path):
      addField(path, "g")
      word = "coalesce(left(g.x #>> '{}', 200), '')"
    }
  }

  var counts: String {
    "SELECT \(bucket), \(word), count(*) \(source) GROUP BY 1, 2 ORDER BY 1"
  }

  mutating func numbers(of path: [String], limit: Int) -> String {
    addField(path, "v")
    return """
      SELECT \(bucket), \(word), (v.x #>> '{}')::float8 \(source) AND jsonb_typeof(v.x) = 'number' LIMIT \(limit)
      """
  }

  /// A meta is parsed only if it has the key somewhere; `OFFSET 0` lets it be parsed once.
  private mutating func addField(_ path: [String], _ name: String) {
    values.append("\"\(path.last ?? "")\"")
    let key = "$\(values.count)"
    var field = "prism_json(r.meta)"
    for part in path {
      values.append(part)
      field += " -> $\(values.count)::text"
    }
    lateral +=
      " CROSS JOIN LATERAL (SELECT CASE WHEN strpos(r.meta, \(key)) > 0 THEN \(field) END AS x OFFSET 0) \(name)"
  }

  private var bucket: String {
    let width = grouping.bucketMilliseconds
    return "(extract(epoch FROM r.received) * 1000)::bigint / \(width) * \(width)"
  }

  /// Streams, and what metas have in common, only where the question asks for them.
  private var source: String {
    let readsMetas = !lateral.isEmpty || !filter.metas.isEmpty
    let readsStreams =
      filter.device ?? filter.namespace ?? filter.kind != nil || [.namespace, .device, .kind].contains(grouping.key)
    return "FROM \(readsMetas ? "whole_reports" : "reports") r"
      + (readsStreams ? " JOIN streams s ON s.id = r.stream" : "")
      + "\(lateral) WHERE \(conditions.joined(separator: " AND "))"
  }
}
