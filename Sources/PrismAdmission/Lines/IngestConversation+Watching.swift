public import PrismProtocol

// Changes of tables on their way to the client (docs/records.md).
extension IngestConversation {
  /// A commit changed a table. - Returns: whether this connection watches it, and is to be advanced.
  public mutating func take(_ change: RecordTableChange) -> Bool { watches.note(change) }

  /// Keeps changes of a table for `hasChanged`; no line is sent of them. - Throws: `bad_request`, `busy`.
  public mutating func beginPoll(_ table: WatchedTable.Key) throws(Refusal) {
    try watches.expect(table, userID: session.peer.accountID, isSilent: true)
  }

  /// Whether a commit has changed the table after `generation`, since `beginPoll`.
  public func hasChanged(_ table: WatchedTable.Key, since generation: Int64) -> Bool {
    watches.hasChanged(table, since: generation)
  }

  /// Its changes are not kept any more.
  public mutating func endPoll(_ table: WatchedTable.Key) { watches.end(table) }
}

extension RecordRequest {
  var key: WatchedTable.Key { WatchedTable.Key(namespace: namespace, table: table.name) }
}
