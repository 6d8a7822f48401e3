public import PrismProtocol

/// A file that the configuration names, with what was in it when the configuration was read. Another content is another
/// configuration: the one in force keeps what it has until the new one was found sound.
public struct HeldFile: Sendable, Equatable {
  /// From the root.
  public var path: String
  /// Of a token without the white space after it.
  public var content: Secret
  public init(path: String, content: Secret) { (self.path, self.content) = (path, content) }
}
