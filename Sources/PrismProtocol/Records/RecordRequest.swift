/// A request of the ingest socket about records, with its table as the namespace declares it.
public struct RecordRequest: Sendable {
  /// The kind of request.
  public enum Action: Sendable {
    /// Sets all fields: an object.
    case put(RecordID, JSONValue)
    /// Changes fields by a JSON Merge Patch: an object.
    case patch(RecordID, JSONValue)
    case delete(RecordID)
    /// By the local or the server's id.
    case get(RecordID)
    /// Records by ascending id, behind `after`.
    case list(after: RecordID?, limit: Int)
    /// The number of the table's changes; later ones are sent as they come.
    case watch
  }

  /// Bytes of a record's fields at most, as JSON without white space.
  public static let fieldsBytesMax = 10_240
  /// Records of one `list` at most.
  public static let listMax = 1000
  /// Records of one `list` unless the request says another number.
  public static let listDefault = 100
  /// Bytes of an answer to `list`, after which its page ends.
  public static let pageBytesMax = 96 * 1024

  /// The namespace of the table.
  public var namespace: NamespaceName
  /// The table as it is declared.
  public var table: RecordTable
  /// The request itself.
  public var action: Action
  /// Of a change: it is refused with `version_mismatch` unless this holds. nil: no condition.
  public var condition: VersionCondition?
  /// Bytes of the request line.
  public var bytes: Int
  /// Bytes of memory that the request takes until it is committed.
  public let memoryBytes: Int

  /// The most memory that the answer takes: its records, and their text.
  public var answerBytesMax: Int {
    switch action {
    case .list(_, let limit): 2 * min(Self.pageBytesMax, limit * StoredRecord.textBytesMax)
    case .get: 2 * StoredRecord.textBytesMax
    case .put, .patch, .delete, .watch: 1024
    }
  }

  /// It changes nothing.
  public var isReading: Bool {
    switch action {
    case .get, .list, .watch: true
    case .put, .patch, .delete: false
    }
  }

  public init(
    namespace: NamespaceName, table: RecordTable, action: Action, condition: VersionCondition? = nil, bytes: Int
  ) {
    (self.namespace, self.table, self.action) = (namespace, table, action)
    (self.condition, self.bytes) = (condition, bytes)
    let fields: JSONValue? =
      switch action {
      case .put(_, let fields), .patch(_, let fields): fields
      case .delete, .get, .list, .watch: nil
      }
    memoryBytes = 256 + bytes + (fields?.memoryBytes ?? 0)
  }
}

/// The requests about records: the only field of their line.
public enum RecordVerb: String, Sendable, CaseIterable {
  case put, patch, delete, get, list, watch
}

/// The answer to a request about records, once its commit holds.
public enum RecordAnswer: Sendable, Equatable {
  /// Committed. - Parameter version: of the record; nil if it was deleted.
  case stored(version: Int64?)
  /// nil if no record has the id.
  case record(StoredRecord?)
  /// A page of records, the newest generation of their table, and whether more records follow.
  case list([StoredRecord], generation: Int64, isMore: Bool)
  /// The changes of the table are sent from here on: its number of changes so far.
  case watching(NamespaceName, RecordTableName, generation: Int64)
  /// Nothing was changed.
  case refused(Refusal)
}

/// The result of a commit for a request about records.
public struct RecordOutcome: Sendable, Equatable {
  /// For the program that asked.
  public var answer: RecordAnswer
  /// A change waits for the server now.
  public var hasChanged: Bool
  public init(_ answer: RecordAnswer, hasChanged: Bool = false) {
    (self.answer, self.hasChanged) = (answer, hasChanged)
  }
}
