import PrismPacket
import PrismProtocol

/// The server's side of records: its changes, and what devices have to learn of them (docs/records.md).
///
/// Each change of the server's gets a number of its namespace's sequence. A record carries the number of its newest change,
/// and a deleted one leaves a row with the number of its deletion: together they are the log. An answer is made from one
/// state of the database. So a change before the newest one of its record need not be kept.
protocol RecordStore: Sendable {
  /// Makes all changes in one transaction, or no change.
  /// - Parameter condition: of each record as it is before.
  func change(
    _ changes: [RecordChange], of place: RecordPlace, if condition: ChangeCondition
  ) async throws(RecordFailure) -> [RecordChanged]

  /// A record by the id that its writer or device chose, or the server's; nil: there is no such record.
  func record(_ id: RecordID, of place: RecordPlace) async throws(StoreFailure) -> CollectedRecord?

  /// Whether the record is deleted, and its device does not have that change.
  func isDeletionPending(_ id: RecordID, of place: RecordPlace) async throws(StoreFailure) -> Bool

  /// Commands that did not change since, by namespace. - Parameter time: milliseconds since 1970.
  func commands(changedBefore time: Int64, limit: Int) async throws(StoreFailure) -> [CommandPlace]

  /// The tags of all devices that these namespaces have, in no particular order.
  func tags(of namespaces: [String]) async throws(StoreFailure) -> [CollectedTags]

  func reply(to question: DownQuestion) async throws(StoreFailure) -> RecordReply

  /// Reads all records of `place` in one state of the database.
  /// - Parameter take: gets the head, then each record; its error ends the reading.
  func readAll(
    of place: RecordPlace, _ take: @escaping @Sendable (DownLine) throws -> Void
  ) async throws
}

/// The answer to a device's question.
enum RecordNews: Sendable, Equatable {
  /// - Parameter sequence: the namespace's newest number.
  case operations([DownOperation], sequence: Int64)
  /// All records have to be read. - Parameter sequence: the table's newest number.
  case all(RecordPlace, sequence: Int64)
}

/// The answer to a device's question, with the store that it is of.
struct RecordReply: Sendable, Equatable {
  var news: RecordNews
  var store: StoreMark
  /// The device's last packet is not in the store.
  var isChainBroken = false
}

/// The limits of the log.
enum RecordLog {
  static let operationsMax = DownOperation.countMax
  /// Deletions of a table that are kept: for more than that a device gets all records.
  static let deletionsMax = operationsMax
}
