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
}
