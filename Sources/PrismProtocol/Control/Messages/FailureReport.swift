/// Why the last POST did not deliver.
public struct FailureReport: ControlMessage {
  public var time = ""
  /// Of HTTP; nil if no whole answer came.
  public var status: Int?
  /// The collector's; nil if it gave none.
  public var code: String?
  public var cause = ""

  public init() {}

  public static let fields: [ControlField<FailureReport>] = [
    .init("time", \.time), .init("status", \.status), .init("code", \.code), .init("cause", \.cause),
  ]
}
