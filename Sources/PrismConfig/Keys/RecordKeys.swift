import PrismProtocol

/// One entry of `records` as it was written.
package struct RecordTableDraft: Sendable, Equatable {
  var name: RecordTableName?
  var direction = RecordDirection.up
  var scope = RecordScope.device
  var onConflict = RecordConflict.newest
  var onlyWifi: Bool?
  var maxRecord = 10_000
  var references: [MapEntry<RecordTableName>] = []
  var index: [String] = []

  var table: RecordTable? {
    name.map {
      RecordTable(
        $0, direction: direction, scope: scope, onConflict: onConflict, maxRecord: maxRecord, onlyWifi: onlyWifi,
        references: Dictionary(references.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first }),
        index: Set(index))
    }
  }
}

extension RecordTableDraft {
  init(_ table: RecordTable) {
    self.init(
      name: table.name, direction: table.direction, scope: table.scope, onConflict: table.onConflict,
      onlyWifi: table.onlyWifi, maxRecord: table.maxRecord,
      references: table.references.sorted { $0.key < $1.key }.map { MapEntry(name: $0.key, value: $0.value) },
      index: table.index.sorted())
  }

  private typealias Key = ConfigurationKey<RecordTableDraft>

  static let keys = KeyTable(
    [
      Key("table", .recordTable, optional: \.name, isRequired: true, "the table's name"),
      Key(
        "direction", .choice, at: \.direction,
        "who changes its records: `up`, this device; `down`, the server; `both`, either side"),
      Key(
        "scope", .choice, at: \.scope,
        "whose records the server keeps: those of this `device`, or one set for the `fleet` (only with `down`)"),
      Key(
        "onConflict", .choice, at: \.onConflict,
        "with `both`: the change that holds if both sides changed a record: the `newest`, the `local` or the `remote` one"
      ),
      Key(
        "onlyWifi", .bool, optional: \.onlyWifi, default: "the namespace's", "its changes stay on unmetered networks"),
      Key(
        "maxRecord", .integer(1...RecordTable.recordsMax, unit: "records"), at: \.maxRecord,
        "the most records here; a new one is refused with `table_full`, and more of the server's are not taken"),
      Key(
        "references", .references, at: \.references, default: "none",
        "fields that hold the id of a record, and the table of that record"),
      Key(
        "index", .list(of: .member, "a list of fields"), at: \.index, default: "none",
        "with `down`: at most \(RecordTable.indexedFieldsMax) fields by which `enrich` finds a record"),
    ], defaults: RecordTableDraft())
}

extension ValueForm where Value == RecordTableName {
  static var recordTable: Self {
    let allowed = "a table's name: 1 to 64 of A-Z a-z 0-9 _ -, the first a letter or digit"
    let form = ValueForm<String>.string(allowed) { RecordTableName($0).map { !$0.isBuiltIn } ?? false }
    return ValueForm(allowed: allowed, schema: form.schema) { node, key, checker in
      form.read(node, key, &checker).flatMap { RecordTableName($0) }
    } show: {
      .string($0.text)
    }
  }
}

extension ValueForm where Value == [MapEntry<RecordTableName>] {
  static var references: Self {
    map(
      to: .recordTable, "a map like {product: product}", names: "1 to 128 bytes",
      isName: { (1...128).contains($0.utf8.count) })
  }
}

extension ValueForm where Value == [RecordTable] {
  /// Tables of one namespace at most.
  static var recordTablesMax: Int { 64 }

  static var recordTables: Self {
    let allowed = "a list of at most \(recordTablesMax) tables"
    let list = ValueForm<[RecordTableDraft]>.list(
      of: .object(RecordTableDraft.keys, "a map like {table: printer, direction: up}"), allowed)
    return ValueForm(allowed: allowed, schema: list.schema) { node, key, checker in
      guard let drafts = list.read(node, key, &checker), case .sequence(let nodes) = node.value else { return nil }
      let tables = drafts.compactMap(\.table)
      guard tables.count <= recordTablesMax else {
        checker.fault(node.line, key, "has \(tables.count) tables, must be \(allowed)")
        return nil
      }
      let faultsBefore = checker.faults.count
      for (index, table) in tables.enumerated() {
        check(table, index, tables, line: nodes[index].line, "\(key)[\(index)]", &checker)
      }
      return checker.faults.count == faultsBefore ? tables : nil
    } show: {
      list.show($0.map { RecordTableDraft($0) })
    }
  }

  private static func check(
    _ table: RecordTable, _ index: Int, _ tables: [RecordTable], line: Int, _ key: String, _ checker: inout Checker
  ) {
    if let earlier = tables.firstIndex(where: { $0.name == table.name }), earlier < index {
      checker.fault(line, "\(key).table", "is \(table.name), which records[\(earlier)] has already")
    }
    if table.scope == .fleet && table.direction != .down {
      checker.fault(
        line, "\(key).scope", "is fleet, must be device with direction \(table.direction.rawValue); only down has fleet"
      )
    }
    if table.onConflict != .newest && table.direction != .both {
      checker.fault(
        line, "\(key).onConflict",
        "is \(table.onConflict.rawValue), but only one side changes a table with direction \(table.direction.rawValue); "
          + "remove it, or write direction: both")
    }
    if table.references.count > RecordTable.referencesMax {
      let most = RecordTable.referencesMax
      checker.fault(line, "\(key).references", "has \(table.references.count) fields, must be at most \(most)")
    }
    if !table.index.isEmpty && table.direction != .down {
      checker.fault(
        line, "\(key).index",
        "is given with direction \(table.direction.rawValue), must be left out; only tables with direction down have it"
      )
    }
    if table.index.count > RecordTable.indexedFieldsMax {
      let most = RecordTable.indexedFieldsMax
      checker.fault(line, "\(key).index", "has \(table.index.count) fields, must be at most \(most)")
    }
    for (field, name) in table.references.sorted(by: { $0.key < $1.key })
    where !tables.contains(where: { $0.name == name }) {
      checker.fault(
        line, "\(key).references.\(field.shownInFault)", "is \(name), must be a table of this namespace's records")
    }
  }
}
