import PrismProtocol
import PrismSQLite

/// Adds fields of the server's records to reports as they are stored (docs/records.md, "Enrich reports").
struct Enriching: PlainOperations {
  let transaction: StoreTransaction

  /// The batch with the fields of `rules` in its reports. One that would become too large stays as it is.
  func enriched(_ batch: ReportBatch, by rules: [RecordEnrichment]) throws(SQLiteError) -> ReportBatch {
    let byType = batch.types.map { type in rules.filter { $0.type == type.type } }
    guard byType.contains(where: { !$0.isEmpty }) else { return batch }
    var (result, arena): (ReportBatch, [UInt8]) = (batch, [])
    for (index, row) in batch.rows.enumerated() {
      var body = Array(batch.arena[row.body])
      for rule in byType[row.type] {
        let added = try members(rule, of: body, row.isSelfContained ? [] : batch.context.members, batch.namespace)
        guard !added.isEmpty, result.rows[index].metaBytes + added.count + 1 <= Limits.metaBytesMax else { continue }
        if !body.isEmpty { body.append(UInt8(ascii: ",")) }
        body += added
        result.rows[index].metaBytes += added.count + 1
      }
      result.rows[index].body = arena.append(body[...])
      result.rows[index].payload = row.payload.map { arena.append(batch.arena[$0]) }
      result.rows[index].clientReportID = row.clientReportID.map { arena.append(batch.arena[$0]) }
    }
    result.arena = arena
    return result
  }

  /// `"into":{…}`; empty if there is nothing to add.
  private func members(
    _ rule: RecordEnrichment, of body: [UInt8], _ context: [UInt8], _ namespace: NamespaceName
  ) throws(SQLiteError) -> [UInt8] {
    guard Self.value(rule.into, in: body) == nil, Self.value(rule.into, in: context) == nil,
      let from = Self.value(rule.from, in: body) ?? Self.value(rule.from, in: context)
    else { return [] }
    guard let fields = try fields(rule, from, namespace) else {
      transaction.memory.enrichments.missing[namespace, default: 0] += 1
      return []
    }
    transaction.memory.enrichments.added[namespace, default: 0] += 1
    var text: [UInt8] = []
    JSONValue.append(quoted: rule.into, to: &text)
    return text + [UInt8(ascii: ":")] + fields
  }

  /// nil: there is no such record.
  private func fields(
    _ rule: RecordEnrichment, _ from: JSONValue, _ namespace: NamespaceName
  ) throws(SQLiteError) -> [UInt8]? {
    guard let value = DownRows.indexed(from), let table = access.table(rule.table, of: namespace),
      let content = state.records.down[table]?.content,
      content > 0
    else { return nil }
    let key = EnrichmentCache.Key(content: content, by: rule.by, value: value, fields: rule.fields)
    let generation = state.records[reading: table].generation
    if let known = transaction.memory.enrichments.find(key, generation: generation) { return known }
    guard let record = try record(value, by: rule.by, in: content),
      let members = (try? JSONValue(parsing: record.fields, allowsDuplicateKeys: true))?.object
    else { return nil }
    let found = JSONValue.object(members.filter { rule.fields.contains($0.key) }).bytes
    transaction.memory.enrichments.add(found, key, generation: generation)
    return found
  }

  /// - Parameter field: nil: the id.
  private func record(_ value: String, by field: String?, in content: Int64) throws(SQLiteError) -> DownRecordRow? {
    if let field { return try rows.find(value, by: field, in: content) }
    guard let id = RecordID(value) else { return nil }
    return try rows.find(id, in: content)
  }

  /// The value of a member. - Parameter members: as JSON, without braces.
  static func value(_ key: String, in members: [UInt8]) -> JSONValue? {
    let span = members.span
    guard let member = MetaMembers(span, 0..<members.count).members.first(where: { $0.key == key }) else { return nil }
    let text = [UInt8(ascii: "{")] + members[member.text] + [UInt8(ascii: "}")]
    return (try? JSONValue(parsing: text, allowsDuplicateKeys: true))?[key]
  }
}

extension [UInt8] {
  fileprivate mutating func append(_ bytes: ArraySlice<UInt8>) -> Range<Int> {
    append(contentsOf: bytes)
    return (count - bytes.count)..<count
  }
}
