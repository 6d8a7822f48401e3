/// One refused report: the code for programs, a message for people (never with the report's content), and where trying
/// again later makes sense, when.
public struct Refusal: Error, Equatable, Sendable {
  /// The reason, for programs.
  public let code: RefusalCode
  /// The reason, for people.
  public let message: String
  /// nil: trying again unchanged is no use.
  public let retryMilliseconds: Int?

  /// The operator's next change of the configuration may end it: a namespace whose file is missing, a type that is not in its
  /// list yet. A source that can't send again waits for it.
  public var waitsForConfiguration: Bool { code == .unknownNamespace || code == .unknownType }

  public init(_ code: RefusalCode, _ message: String, retryMilliseconds: Int? = nil) {
    self.code = code
    self.message = message
    self.retryMilliseconds = retryMilliseconds
  }
}
