/// What `prismctl doctor` says of one thing that commonly goes wrong.
public struct Finding: Sendable, Equatable {
  public enum Result: String, Sendable, CaseIterable {
    case ok
    /// Works, and won't for long, or not as somebody may think.
    case warning
    /// Something does not work.
    case fault
    /// Nobody could look; `text` says why.
    case skipped
  }

  /// What was looked at, in a word or two: `disk`, `url shop`.
  public var check: String
  public var result: Result
  /// What was found, with its figures.
  public var text: String
  /// What to do; nil where nothing is.
  public var advice: String?

  public init(_ check: String, _ result: Result, _ text: String, advice: String? = nil) {
    (self.check, self.result, self.text, self.advice) = (check, result, text, advice)
  }

  public var json: JSONValue {
    [
      "check": .string(check), "result": .string(result.rawValue), "text": .string(text),
      "advice": advice.map { .string($0) } ?? .null,
    ]
  }

  /// nil for what is none.
  public init?(_ json: JSONValue) {
    guard let check = json["check"]?.string, let result = json["result"]?.string.flatMap(Result.init),
      let text = json["text"]?.string
    else { return nil }
    self.init(check, result, text, advice: json["advice"]?.string)
  }
}
