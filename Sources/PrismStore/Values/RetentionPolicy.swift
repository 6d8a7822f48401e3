/// What a namespace's configuration says of its stored rows.
public struct RetentionPolicy: Sendable, Equatable {
  /// Of a namespace of which nothing else is known.
  static let expirationDaysStandard = 15

  public var expirationDays: Int
  public var isUpdateClear: Bool
  public var appVersion: String?
  /// A row whose payload is larger is dropped at start, as `removed`.
  public var maxBodyBytes: Int
  public init(expirationDays: Int, isUpdateClear: Bool, appVersion: String?, maxBodyBytes: Int) {
    (self.expirationDays, self.isUpdateClear) = (expirationDays, isUpdateClear)
    (self.appVersion, self.maxBodyBytes) = (appVersion, maxBodyBytes)
  }
}
