/// What the daemon's process takes of the machine. What can't be read is 0.
public struct ProcessFigures: Sendable, Equatable {
  public var residentBytes = 0, virtualBytes = 0
  public var cpuSeconds = 0.0
  public var openDescriptors = 0, descriptorsMax = 0
  public var threads = 0
  /// Since 1970.
  public var startSeconds = 0.0

  public init() {}
}
