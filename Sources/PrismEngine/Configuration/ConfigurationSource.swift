public import PrismConfig

/// The reader of the configuration's files, for the control handler.
public protocol ConfigurationSource: Sendable {
  /// Reads the files again and applies them: all of them, or nothing if there is a fault.
  func reload() async -> ReloadOutcome
  /// The configuration in force, with the origin of each value.
  func inForce() async -> LoadedConfiguration
  /// Reads the configuration at `path`, and puts nothing in force. - Throws: every fault.
  func read(_ path: String) async throws(ConfigurationFaults) -> LoadedConfiguration
}

/// The result of a reload.
public enum ReloadOutcome: Sendable, Equatable {
  /// This generation is in force. - `changes`: the differences, for people; empty if it was in force before.
  case inForce(generation: Int, changes: [String], secondsAgo: Int = 0)
  /// The configuration in force stays. The faults are as `prismd check` prints them, one a line.
  case refused([String])
}
