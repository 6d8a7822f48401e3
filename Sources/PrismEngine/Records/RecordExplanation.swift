import PrismConfig
import PrismProtocol
import PrismStore

/// Why changes of records are not leaving, for `prismctl explain`.
struct RecordExplanation {
  private let engine: Engine
  init(_ engine: Engine) { self.engine = engine }

  /// A line for each table that is declared, or still holds a change.
  func lines(_ namespace: NamespaceName, _ pipeline: NamespacePipeline) async -> [String] {
    let known = await engine.parts.store.records.tables(of: namespace)
    let declared = engine.hub.current.namespaces[namespace]?.tables.map(\.name) ?? []
    let counts = Dictionary(uniqueKeysWithValues: known.map { ($0.name, $0.ledger) })
    let unsent = { (table: RecordTableName) in (counts[table]?[.waiting] ?? 0) + (counts[table]?[.claimed] ?? 0) }
    var lines: [String] = []
    for table in Set(declared).union(known.map(\.name).filter { unsent($0) > 0 }).sorted() {
      let gate = await PipelineRecords.explain(pipeline, table)
      lines.append("\(table) records: \(ControlHandler.words(gate, isEmpty: unsent(table) == 0))")
    }
    let refused = (try? await engine.parts.store.refusedRecords(of: namespace, after: 0, limit: 1)) ?? []
    if let first = refused.first {
      lines.append(
        "\(first.table) records: the server refused changes that wait until their records are changed again; "
          + "`prismctl dead list --namespace \(namespace)` tells why")
    }
    return lines
  }
}
