/// Why a report was not taken. The texts are part of the protocol (docs/ingest-protocol.md).
public enum RefusalCode: String, Sendable, CaseIterable, Hashable {
  case badRequest = "bad_request"
  case unknownNamespace = "unknown_namespace"
  case unknownType = "unknown_type"
  case gatherOff = "gather_off"
  case forbidden
  case metaTooLarge = "meta_too_large"
  case payloadTooLarge = "payload_too_large"
  /// The type's `perMinute` is used up by this user.
  case rateLimited = "rate_limited"
  case storeFull = "store_full"
  case busy
  case diskFull = "disk_full"
  /// The commit failed in a way that leaves open whether it holds: send it again under the same report id.
  case unknown
  case `internal`
  /// The namespace declares no such table of records.
  case unknownTable = "unknown_table"
  /// The table's records are changed by the server only.
  case readOnly = "read_only"
  /// The table holds as many records as its `maxRecord` allows.
  case tableFull = "table_full"
  /// A field refers to a record that does not exist.
  case referenceMissing = "reference_missing"
  /// The record has another version than the change is for.
  case versionMismatch = "version_mismatch"

  /// The operator's next change of the configuration may end it: a namespace whose file is missing, a type that is not in its
  /// list yet. A source that can't send again waits for it.
  public var waitsForConfiguration: Bool { self == .unknownNamespace || self == .unknownType }
}

/// One refused report: the code for programs, a message for people (never with the report's content), and where trying
/// again later makes sense, when.
public struct Refusal: Error, Equatable, Sendable {
  /// The reason, for programs.
  public let code: RefusalCode
  /// The reason, for people.
  public let message: String
  /// nil: trying again unchanged is no use.
  public let retryMilliseconds: Int?

  public init(_ code: RefusalCode, _ message: String, retryMilliseconds: Int? = nil) {
    self.code = code
    self.message = message
    self.retryMilliseconds = retryMilliseconds
  }
}
