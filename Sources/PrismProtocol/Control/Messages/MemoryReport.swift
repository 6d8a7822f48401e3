/// What the daemon takes of the machine.
public struct MemoryReport: ControlMessage {
  public var residentBytes = 0, virtualBytes = 0

  public init() {}

  public static let fields: [ControlField<MemoryReport>] = [
    .init("residentBytes", \.residentBytes), .init("virtualBytes", \.virtualBytes),
  ]
}
