import PrismProtocol
import PrismSQLite

/// A row of `released`: rows of a ring that a trigger let go, and that no packet has yet. They are `waiting`.
struct ReleaseRecord: CheckedRecord, Sendable {
  enum Column: String, SQLiteColumn { case number, namespace, kind, rule, members, devices, checksum }

  var number: Int64 = 0
  var queue = QueueID(namespace: 0, kind: .meta)
  /// The trigger's name; empty: dead letters that were queued again.
  var rule = ""
  var members = IDRuns()
  /// The most devices that send for the trigger: the collector is asked before these rows leave. 0: they may leave.
  var devices = 0

  mutating func pass(_ row: inout RowFields<Column>) {
    row(.number, &number)
    row.queue(.namespace, .kind, &queue)
    row(.rule, &rule)
    row(.members, &members)
    row.count(.devices, &devices, isNewer: true)
    row.check(.checksum)
  }
}
