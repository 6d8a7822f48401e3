/// The keys of an exported report's meta that prismctl reads.
public struct ExportedMeta: ControlMessage {
  /// Milliseconds since 1970; nil if the meta has no time.
  public var createTime: Int?
  /// nil if the meta has no id.
  public var reportID: String?

  public init() {}

  public static let fields: [ControlField<ExportedMeta>] = [
    .init(ifPresent: "CREATE_TIME", \.createTime), .init(ifPresent: "REPORT_ID", \.reportID),
  ]
}
