public import PrismProtocol

/// A result of `prismctl doctor` about one thing that commonly goes wrong.
public struct Finding: ControlMessage {
  /// How bad it is; `skipped` if it could not be checked.
  public enum Result: String, Sendable, CaseIterable, ControlValue {
    case ok
    /// Works, and won't for long, or not as somebody may think.
    case warning
    /// Something does not work.
    case fault
    /// It could not be looked at; `text` says why.
    case skipped
  }

  /// The thing that was checked, in a word or two: `disk`, `url shop`.
  public var check = "?"
  /// Of a newer daemon a result may be unknown here: then nothing is claimed.
  public var result = Result.skipped
  /// The result in words, with its figures.
  public var text = ""
  /// The remedy; nil if there is nothing to do.
  public var advice: String?

  public init() {}

  public init(_ check: String, _ result: Result, _ text: String, advice: String? = nil) {
    (self.check, self.result, self.text, self.advice) = (check, result, text, advice)
  }

  /// The namespaces that `check` names behind its first words: `key of shop, prism`.
  public var namespaces: [String] {
    for word in ["url ", "key of ", "token of ", "version of ", "delivery ", "namespace "] where check.hasPrefix(word) {
      return check.dropFirst(word.count).split(separator: ", ").map(String.init)
    }
    return []
  }
}
