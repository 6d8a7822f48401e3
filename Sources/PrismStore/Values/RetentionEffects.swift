/// The effects of a configuration on the rows of a namespace that wait now, metas and payloads together.
public struct RetentionEffects: Sendable, Equatable {
  /// Stored under another version of the app.
  public var cleared = 0
  /// Of a payload that is larger than the limit.
  public var removed = 0
  /// Rows older than the limit.
  public var expired = 0
  /// The oldest rows, where a quota makes room.
  public var evicted = 0
  /// The bytes that stay over the quota. New reports are refused until they have left.
  public var overQuotaBytes = 0
  /// false: there were more rows than could be looked at; the counts are the least.
  public var isComplete = true

  public init() {}
}
