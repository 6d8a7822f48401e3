public import PrismProtocol

/// The settings of a namespace's configuration for its stored rows.
public struct RetentionPolicy: Sendable, Equatable {
  /// Of a namespace of which nothing else is known.
  static let expirationDaysStandard = 15
  /// The same of what the ring holds.
  public static let ringHoursStandard = 168

  /// Rows expire after this number of days.
  public var expirationDays: Int
  /// Whether rows of another version of the app are dropped.
  public var isUpdateClear: Bool
  /// The version of the app; nil if it is not known.
  public var appVersion: String?
  /// A row whose payload is larger is dropped at start, as `removed`.
  public var maxBodyBytes: Int
  /// Kept rows are overwritten after this number of hours at most.
  public var ringHours: Int
  /// Of the hourly reports `ringHealth`; nil: there are no such reports.
  public var ringReportQuota: StoreQuota?
  /// The folder for reports that are kept in memory; nil: no type is kept there.
  public var memoryFolder: String?
  public init(
    expirationDays: Int, isUpdateClear: Bool, appVersion: String?, maxBodyBytes: Int,
    ringHours: Int = ringHoursStandard, ringReportQuota: StoreQuota? = nil, memoryFolder: String? = nil
  ) {
    (self.ringReportQuota, self.memoryFolder) = (ringReportQuota, memoryFolder)
    (self.expirationDays, self.isUpdateClear) = (expirationDays, isUpdateClear)
    (self.appVersion, self.maxBodyBytes, self.ringHours) = (appVersion, maxBodyBytes, ringHours)
  }
}

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
