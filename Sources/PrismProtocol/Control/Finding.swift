/// What `prismctl doctor` says of one thing that commonly goes wrong.
public struct Finding: ControlMessage {
  public enum Result: String, Sendable, CaseIterable, ControlValue {
    case ok
    /// Works, and won't for long, or not as somebody may think.
    case warning
    /// Something does not work.
    case fault
    /// It could not be looked at; `text` says why.
    case skipped

    public var controlJSON: JSONValue { .string(rawValue) }
    public init?(controlJSON json: JSONValue) {
      guard let result = json.string.flatMap(Result.init(rawValue:)) else { return nil }
      self = result
    }
  }

  /// What was looked at, in a word or two: `disk`, `url shop`.
  public var check = "?"
  /// Of a newer daemon a result may be unknown here: then nothing is claimed.
  public var result = Result.skipped
  /// What was found, with its figures.
  public var text = ""
  /// What to do; nil where nothing is.
  public var advice: String?

  public init() {}

  public init(_ check: String, _ result: Result, _ text: String, advice: String? = nil) {
    (self.check, self.result, self.text, self.advice) = (check, result, text, advice)
  }

  public static let fields: [ControlField<Finding>] = [
    .init("check", \.check), .init("result", \.result), .init("text", \.text), .init("advice", \.advice),
  ]
}
