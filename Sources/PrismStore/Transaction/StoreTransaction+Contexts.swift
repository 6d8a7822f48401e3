import PrismProtocol
import PrismSQLite

// The context that a row refers to: it says the row's owner and completes its meta.
extension StoreTransaction {
  /// The members and settings that turn `row` into a meta; nil if its type or context is not as it was stored.
  func rendering(of row: StoredRow, _ queue: QueueID) throws(SQLiteError) -> RowRendering? {
    guard let type = names.types[row.type], let namespace = names.namespaces[queue.namespace],
      let context = row.context <= 0 ? [] : try context(row.context, namespace: queue.namespace)?.members
    else { return nil }
    return RowRendering(context: context) { context in
      MetaSplicing(
        monitorType: MetaSplicing.monitorType(type, in: namespace).utf8, isBusiness: namespace.isBusiness,
        context: context, epoch: memory.epoch.bytes)
    }
  }

  /// The members of a context; nil as below.
  func members(ofContext id: Int64, namespace: Int) throws(SQLiteError) -> [UInt8]? {
    try context(id, namespace: namespace)?.members
  }

  /// nil if there is no such context, or it fails its checksum.
  private func context(_ id: Int64, namespace: Int) throws(SQLiteError) -> ContextRecord? {
    if let stored = state.contexts.stored(id) { return stored }
    let read = try statement(NameStatement.readContext).bind([":id": id])
    guard let record = try read.first(of: ContextRecord.Column.self, { ContextRecord($0) }),
      record.namespace == namespace
    else { return nil }
    state.contexts.remember(record)
    return record
  }

  /// - Parameter contextColumn: of a row. - Returns: nil if its context is not what was stored.
  func owner(_ contextColumn: Int64, namespace: Int) throws(SQLiteError) -> RowOwner? {
    if contextColumn <= 0 { return RowOwner(contextColumn: contextColumn) }
    if let owner = state.contexts.owner(of: contextColumn) { return owner }
    return try context(contextColumn, namespace: namespace)?.owner
  }
}

/// The members and settings that turn a row into the lines that leave.
///
/// A class: as a value, its arrays would be counted up and down for every row.
final class RowRendering: Sendable {
  /// The members of the row's context, which are not in its own line.
  let context: [UInt8]
  private let splicing: MetaSplicing
  private let wholeSplicing: MetaSplicing

  /// - Parameter splicing: makes what renders rows, with these members in each.
  init(context: [UInt8], splicing: (_ context: [UInt8]) -> MetaSplicing) {
    (self.context, self.splicing, wholeSplicing) = (context, splicing([]), splicing(context))
  }

  /// The row's own line.
  func append(_ row: StoredRow, to metas: inout [UInt8]) { append(row, splicing, to: &metas) }

  /// The row with its context: a report by itself.
  func whole(_ row: StoredRow) -> [UInt8] {
    var meta: [UInt8] = []
    append(row, wholeSplicing, to: &meta)
    return meta
  }

  private func append(_ row: StoredRow, _ splicing: MetaSplicing, to metas: inout [UInt8]) {
    splicing.append(
      row.reportID.map { .given($0) } ?? .made(RowID(value: row.id)),
      createdTime: row.flags.contains(.ownCreateTime) ? nil : row.createdTime,
      isSelfContained: row.flags.contains(.selfContained), body: row.body, to: &metas)
  }
}
