/// Why the last POST did not deliver.
public struct FailureReport: ControlMessage {
  /// The time of the failure, RFC 3339.
  public var time = ""
  /// Of HTTP; nil if no whole answer came.
  public var status: Int?
  /// The collector's `code`; nil if it gave no code.
  public var code: String?
  /// The cause, for people.
  public var cause = ""

  public init() {}

  public static let fields: [ControlField<FailureReport>] = [
    .init("time", \.time), .init("status", \.status), .init("code", \.code), .init("cause", \.cause),
  ]
}
