/// A report's id as a client gives it: 1 to 64 of `A-Z a-z 0-9 _ -` (docs/ingest-protocol.md).
public struct ReportID: Hashable, Sendable, CustomStringConvertible {
  private static let bytesMax = 64
  /// The id as the client or the daemon wrote it.
  public let text: String

  /// nil when `text` is no report id.
  public init?(_ text: String) {
    guard text.isName(bytesMax: Self.bytesMax, punctuation: "_-", firstIsAlphanumeric: false) else { return nil }
    self.text = text
  }

  private init(name: String) { text = name }

  /// The same with `number` behind it; nil when that is too long.
  public func numbered(_ number: Int) -> ReportID? {
    let numbered = text + String(number)
    return number >= 0 && numbered.utf8.count <= Self.bytesMax ? ReportID(name: numbered) : nil
  }

  public var description: String { text }
}
