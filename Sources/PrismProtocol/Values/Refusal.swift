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
