import PrismProtocol
import PrismStore

extension MetricsText {
  /// The tables of records that ever held a record.
  mutating func add(_ tables: [NamespaceName: [RecordTableStatus]], now: Int64) {
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
    begin(
      "prism_record_age_seconds", .gauge, "Time since the server last said that its changes of a table are all here.")
    for (namespace, name, table) in tables {
      guard let held = table.down?.heldTime else { continue }
      sample(max(0, Double(now - held)) / 1000, ["namespace": namespace, "table": name])
    }
    begin(
      "prism_record_conflicts_total", .counter,
      "Records that this device and the server had changed, by the side whose change held, through restarts.")
    for (namespace, name, table) in tables {
      guard let down = table.down else { continue }
      for (held, count) in [("here", down.keptLocal), ("server", down.keptRemote)] {
        sample(count, ["namespace": namespace, "table": name, "held": held])
      }
    }
  }

  /// Reports of namespaces with `enrich`.
  mutating func addEnrichments(_ store: StoreFigures) {
    begin(
      "prism_enriched_reports_total", .counter, "Reports that were to get fields of a record, by whether it was there.")
    for namespace in store.queues.keys.sorted() {
      sample(store.enriched[namespace] ?? 0, ["namespace": namespace.text, "result": "added"])
      sample(store.notEnriched[namespace] ?? 0, ["namespace": namespace.text, "result": "missing"])
    }
  }

  /// Questions for the server's changes of records.
  mutating func add(_ pulls: [(namespace: String, counters: PullCounters)]) {
    begin(
      "prism_record_questions_total", .counter, "Questions for the server's changes of records, by what came of them.")
    for (namespace, counters) in pulls {
      for result in PullCounters.Result.allCases {
        sample(counters.questions[result] ?? 0, ["namespace": namespace, "result": result.rawValue])
      }
    }
    begin(
      "prism_record_operations_total", .counter, "Operations of the server, and records of whole tables, that came.")
    for (namespace, counters) in pulls { sample(counters.executed, ["namespace": namespace]) }
    begin("prism_record_question_bytes_total", .counter, "Bytes of the questions and their answers on the wire.")
    for (namespace, counters) in pulls { sample(counters.bytes, ["namespace": namespace]) }
  }
}
