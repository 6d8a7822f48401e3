import PrismProtocol
import PrismStore

extension MetricsText {
  /// The tables of records that ever held a record.
  mutating func add(_ tables: [NamespaceName: [RecordTableStatus]]) {
    let tables = tables.sorted { $0.key < $1.key }.flatMap { namespace, tables in
      tables.map { (namespace.text, $0.name.text, $0) }
    }
    begin("prism_records", .gauge, "Records in a table, those that wait for their deletion among them.")
    for (namespace, name, table) in tables { sample(table.records, ["namespace": namespace, "table": name]) }
    begin("prism_record_changes", .gauge, "Changes of records that the server does not have, by their state.")
    for (namespace, name, table) in tables {
      sample(table.ledger[.waiting], ["namespace": namespace, "table": name, "state": "waiting"])
      sample(table.ledger[.claimed], ["namespace": namespace, "table": name, "state": "in_flight"])
    }
    begin("prism_put_record_changes_total", .counter, "Changes of records that programs made, through restarts.")
    for (namespace, name, table) in tables { sample(table.ledger.stored, ["namespace": namespace, "table": name]) }
    begin(
      "prism_settled_record_changes_total", .counter, "Changes of records that are settled, by how, through restarts.")
    let results: [(String, Ledger.Account)] = [
      ("confirmed", .delivered), ("merged", .removed), ("refused", .dead), ("corrupt", .corrupt),
    ]
    for (namespace, name, table) in tables {
      for (result, account) in results {
        sample(table.ledger[account], ["namespace": namespace, "table": name, "result": result])
      }
    }
  }
}
