/// Figures of the daemon's process. A figure that can't be read is 0.
public struct ProcessFigures: Sendable, Equatable {
  /// Resident memory and the address space.
  public var residentBytes = 0, virtualBytes = 0
  /// Time on a processor, user and system.
  public var cpuSeconds = 0.0
  /// Open descriptors and their limit.
  public var openDescriptors = 0, descriptorsMax = 0
  /// Threads of the process.
  public var threads = 0
  /// Since 1970.
  public var startSeconds = 0.0

  public init() {}
}
