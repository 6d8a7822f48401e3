/// The memory of the daemon's process.
public struct MemoryReport: ControlMessage {
  /// Resident bytes and the address space.
  public var residentBytes = 0, virtualBytes = 0

  public init() {}

  public static let fields: [ControlField<MemoryReport>] = [
    .init("residentBytes", \.residentBytes), .init("virtualBytes", \.virtualBytes),
  ]
}
