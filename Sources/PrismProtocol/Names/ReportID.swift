/// A report's id as a client gives it: 1 to 64 of `A-Z a-z 0-9 _ -` (docs/ingest-protocol.md).
public struct ReportID: Hashable, Sendable, CustomStringConvertible {
  /// The id as the client or the daemon wrote it.
  public let text: String

  /// nil when `text` is no report id.
  public init?(_ text: String) {
    guard text.isName(bytesMax: 64, punctuation: "_-", firstIsAlphanumeric: false) else { return nil }
    self.text = text
  }

  public var description: String { text }
}
