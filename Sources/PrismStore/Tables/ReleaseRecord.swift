import PrismProtocol
import PrismSQLite

/// A row of `released`: rows of a ring that a trigger let go, and that no packet has yet. They are `waiting`.
struct ReleaseRecord: CheckedRecord, Sendable {
  enum Column: String, SQLiteColumn { case number, namespace, kind, rule, members, checksum }

  let number: Int64
  let queue: QueueID
  /// The trigger's name; empty: dead letters that were queued again.
  let rule: String
  var members: IDRuns

  init(number: Int64, queue: QueueID, rule: String, members: IDRuns) {
    (self.number, self.queue, self.rule, self.members) = (number, queue, rule, members)
  }

  init?(_ row: some SQLiteValues<Column>) {
    guard let number = row.integer(.number), let queue = QueueID(row.integer(.namespace), row.integer(.kind)),
      let rule = row.string(.rule), let members = row.string(.members).flatMap({ IDRuns(text: $0) })
    else { return nil }
    self.init(number: number, queue: queue, rule: rule, members: members)
    guard row.integer(.checksum) == checksum else { return nil }
  }

  func bind(to insert: SQLiteInsert<Column>) {
    insert.bind([
      .number: number, .namespace: queue.namespace, .kind: queue.kind.number, .rule: rule, .members: members.text,
      .checksum: checksum,
    ])
  }

  private var checksum: Int64 {
    var sum = RecordChecksum(number, Int64(queue.namespace), Int64(queue.kind.number))
    sum.add(rule)
    sum.add(members.text)
    return sum.value
  }
}
