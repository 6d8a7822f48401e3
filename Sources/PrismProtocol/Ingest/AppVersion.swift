/// An app and its version, as its greeting names them.
public struct AppVersion: Sendable, Hashable {
  /// `APP_NAME` of the common information.
  public let name: String
  /// `APP_VERSION`.
  public let version: String

  public init(name: String, version: String) { (self.name, self.version) = (name, version) }
}
