/// The sum at the end of the answer to `carry`.
public struct CarriedReport: ControlMessage {
  /// Packets, the reports in them, and the bytes of their files.
  public var packets = 0, reports = 0, bytes = 0

  public init() {}

  public static let fields: [ControlField<CarriedReport>] = [
    .init("packets", \.packets), .init("reports", \.reports), .init("bytes", \.bytes),
  ]
}
