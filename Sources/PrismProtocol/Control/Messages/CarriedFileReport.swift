/// A file of the answer to `carry`; its parts follow.
public struct CarriedFileReport: ControlMessage {
  /// Without a folder.
  public var name = ""
  /// Of the whole file.
  public var bytes = 0

  public init() {}

  public static let fields: [ControlField<CarriedFileReport>] = [.init("name", \.name), .init("bytes", \.bytes)]
}
