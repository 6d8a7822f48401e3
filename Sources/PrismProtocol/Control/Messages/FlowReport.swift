/// The budget of metered networks.
public struct FlowReport: ControlMessage {
  /// Bytes of the window that are used and allowed on metered networks, and the rest of the window.
  public var usedBytes = 0, allowedBytes = 0, windowEndsInSeconds = 0

  public init() {}

  public static let fields: [ControlField<FlowReport>] = [
    .init("usedBytes", \.usedBytes), .init("allowedBytes", \.allowedBytes),
    .init("windowEndsInSeconds", \.windowEndsInSeconds),
  ]
}
