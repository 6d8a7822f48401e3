import PrismProtocol

extension RecordTable {
  private typealias Key = ConfigurationKey<RecordTable>

  /// One entry of `records`.
  static let keys = KeyTable(
    [
      Key("table", .recordTable, required: \.name, "the table's name"),
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
        "index", .set(of: .member, "a list of fields", atLeast: 0), at: \.index, default: "none",
        "with `down`: at most \(RecordTable.indexedFieldsMax) fields by which `enrich` finds a record"),
    ], defaults: RecordTable(.command))
}

extension ValueForm where Value == RecordTableName {
  static var recordTable: Self {
    .text(
      "a table's name: 1 to 64 of A-Z a-z 0-9 _ -, the first a letter or digit",
      meaning: { RecordTableName($0).flatMap { $0.isBuiltIn ? nil : $0 } }, show: { .string($0.text) })
  }
}

extension ValueForm where Value == [String: RecordTableName] {
  static var references: Self {
    dictionary(
      of: .recordTable, "a map like {product: product}", names: "1 to 128 bytes",
      isName: { (1...128).contains($0.utf8.count) })
  }
}

extension ValueForm where Value == [RecordTable] {
  /// Tables of one namespace at most.
  static var recordTablesMax: Int { 64 }

  static var recordTables: Self {
    .list(
      of: .object(RecordTable.keys, "a map like {table: printer, direction: up}"),
      "a list of at most \(recordTablesMax) tables", atMost: (recordTablesMax, "tables")
    ).checked(faults)
  }

  @Sendable private static func faults(
    _ tables: [RecordTable], _ index: Int
  ) -> [(member: String, message: String)] {
    let (table, direction) = (tables[index], tables[index].direction)
    var faults: [(member: String, message: String)] = []
    if let earlier = tables[..<index].firstIndex(where: { $0.name == table.name }) {
      faults.append(("table", "is \(table.name), which records[\(earlier)] has already"))
    }
    if table.scope == .fleet && direction != .down {
      faults.append(
        ("scope", "is fleet, must be device with direction \(direction.rawValue); only down has fleet"))
    }
    if table.onConflict != .newest && direction != .both {
      let why = "but only one side changes a table with direction \(direction.rawValue)"
      faults.append(
        ("onConflict", "is \(table.onConflict.rawValue), \(why); remove it, or write direction: both"))
    }
    if table.references.count > RecordTable.referencesMax {
      let most = RecordTable.referencesMax
      faults.append(("references", "has \(table.references.count) fields, must be at most \(most)"))
    }
    if !table.index.isEmpty && direction != .down {
      let rule = "must be left out; only tables with direction down have it"
      faults.append(("index", "is given with direction \(direction.rawValue), \(rule)"))
    }
    if table.index.count > RecordTable.indexedFieldsMax {
      let most = RecordTable.indexedFieldsMax
      faults.append(("index", "has \(table.index.count) fields, must be at most \(most)"))
    }
    for (field, name) in table.references.sorted(by: { $0.key < $1.key })
    where !tables.contains(where: { $0.name == name }) {
      faults.append(("references.\(field.shownInFault)", "is \(name), must be a table of this namespace's records"))
    }
    return faults
  }
}
