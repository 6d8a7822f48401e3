public import PrismConfig

/// Where the configuration comes from, for the control desk: whoever reads the files implements it.
public protocol ConfigurationSource: Sendable {
  /// Reads the files anew, and puts what they say in force: all of it or, with any fault, nothing.
  func reload() async -> ReloadOutcome
  /// What is in force, with where each value comes from.
  func inForce() async -> LoadedConfiguration
  /// Reads the configuration at `path`, and puts nothing in force. - Throws: every fault.
  func read(_ path: String) async throws(ConfigurationFaults) -> LoadedConfiguration
}

/// What a reload came to.
public enum ReloadOutcome: Sendable, Equatable {
  /// This generation is in force. - `changes`: what it changed, for people; none when it was in force before.
  case inForce(generation: Int, changes: [String])
  /// What was in force stays. One a line, as `--check-config` prints them.
  case refused([String])
}
