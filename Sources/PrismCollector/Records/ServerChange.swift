import PrismProtocol

/// The server's newest change of a record, which a device's operation meets.
struct ServerChange: Sendable, Equatable {
  /// 0: a device made it.
  var sequence: Int64
  /// Milliseconds since 1970.
  var changedTime: Int64

  /// Whether the operation holds: its device knew this change, or it is later by its time.
  /// - Parameter known: the newest change that the device knew.
  func yields(to operation: RecordOperation, known: Int64) -> Bool {
    sequence <= known || operation.changedTime > changedTime
  }
}

/// A deletion of the server's that devices have to learn.
struct RecordDeletion: Sendable, Equatable {
  /// The row's number when it was there.
  var number: Int64
  var isNamed: Bool
  var changedTime: Int64
  var sequence: Int64
}

extension RecordChange {
  /// The record's fields after the change; nil: it is deleted.
  func fields(of record: CollectedRecord?) -> [UInt8]? {
    switch action {
    case .put(let fields): return fields.bytes
    case .patch(let patch):
      let before = record.flatMap { try? JSONValue(parsing: $0.fields) } ?? .object([])
      return before.merged(with: patch).bytes
    case .delete: return nil
    }
  }
}

extension CollectedRecord {
  /// The server changes it, and knows its state: so the change is later, also if the device's clock is ahead.
  mutating func change(to fields: [UInt8], now: Int64) {
    self.fields = fields
    version += 1
    changedTime = max(now, changedTime + 1)
  }
}
