/// The settings of a namespace's configuration for its stored rows.
public struct RetentionPolicy: Sendable, Equatable {
  /// Of a namespace of which nothing else is known.
  static let expirationDaysStandard = 15

  /// Rows expire after this number of days.
  public var expirationDays: Int
  /// Whether rows of another version of the app are dropped.
  public var isUpdateClear: Bool
  /// The version of the app; nil if it is not known.
  public var appVersion: String?
  /// A row whose payload is larger is dropped at start, as `removed`.
  public var maxBodyBytes: Int
  public init(expirationDays: Int, isUpdateClear: Bool, appVersion: String?, maxBodyBytes: Int) {
    (self.expirationDays, self.isUpdateClear) = (expirationDays, isUpdateClear)
    (self.appVersion, self.maxBodyBytes) = (appVersion, maxBodyBytes)
  }
}
