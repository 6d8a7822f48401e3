/// One of the tables that hold a queue's rows: `m7` is the first one of the queue, `m7_2` one that came later.
struct RowTable: Hashable, Sendable {
  let queue: QueueID
  /// 0 for the table that is made with the namespace.
  let number: Int

  init(_ queue: QueueID, number: Int) { (self.queue, self.number) = (queue, number) }

  var name: String { number == 0 ? queue.table : "\(queue.table)_\(number)" }
}
